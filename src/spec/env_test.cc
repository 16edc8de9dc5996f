#include "spec/env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace muster::spec {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

EnvLookup From(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

EnvLookup From(const std::vector<std::string>& lines) {
  std::map<std::string, std::string> variables;
  for (const std::string& line : lines) {
    const auto equals = line.find('=');
    variables[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return From(std::move(variables));
}

TEST(WorkerEnv, OfAProgramStartedByHandIsRankZeroOfOne) {
  const auto env = ReadWorkerEnv(From(std::map<std::string, std::string>{}));
  ASSERT_TRUE(env.has_value());
  EXPECT_EQ(env->rank, Rank(0));
  EXPECT_EQ(env->world, 1U);
  EXPECT_EQ(env->generation, Generation(1));
  EXPECT_EQ(env->heartbeat_fd, -1);
  EXPECT_EQ(env->arena_fd, -1);
  EXPECT_TRUE(env->checkpoint_dir.empty());
}

TEST(WorkerEnv, ComesBackAsItWasWritten) {
  WorkerEnv env{.rank = Rank(3),
                .world = 4,
                .local_rank = 1,
                .local_world = 2,
                .generation = Generation(7),
                .heartbeat_fd = 5,
                .arena_fd = 6,
                .run_folder = "/r",
                .generation_file = "/r/generation",
                .checkpoint_dir = "/r/checkpoints",
                .checkpoint_every = 100,
                .data = {"/data/a", "b c"},
                .master_port = 29500,
                .restart_count = 2,
                .max_restarts = 3,
                .run_id = "id",
                .error_file = "/r/e.json",
                .omp_threads = 2};
  const auto lines = WriteWorkerEnv(env);
  const auto back = ReadWorkerEnv(From(lines));
  ASSERT_TRUE(back.has_value()) << back.error().ToString();
  EXPECT_EQ(WriteWorkerEnv(*back), lines);
  EXPECT_EQ(back->rank, env.rank);
  EXPECT_EQ(back->generation, env.generation);
  EXPECT_EQ(back->arena_fd, 6);
  EXPECT_EQ(back->data, env.data);
  EXPECT_EQ(back->master_port, 29500);
  EXPECT_EQ(back->error_file, "/r/e.json");
}

TEST(WorkerEnv, HasEveryVariableOfTorchrun) {
  const WorkerEnv env{.rank = Rank(2),
                      .world = 4,
                      .local_rank = 0,
                      .local_world = 2,
                      .master_port = 29500,
                      .error_file = "/e"};
  const auto lines = WriteWorkerEnv(env);
  for (const char* line :
       {"LOCAL_RANK=0", "RANK=2", "GROUP_RANK=1", "ROLE_RANK=2", "ROLE_NAME=default",
        "LOCAL_WORLD_SIZE=2", "WORLD_SIZE=4", "GROUP_WORLD_SIZE=2", "ROLE_WORLD_SIZE=4",
        "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500", "TORCHELASTIC_RESTART_COUNT=0",
        "TORCHELASTIC_MAX_RESTARTS=0", "TORCHELASTIC_RUN_ID=none",
        "TORCHELASTIC_USE_AGENT_STORE=True", "TORCHELASTIC_ERROR_FILE=/e",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING=1", "MUSTER_GENERATION=1"}) {
    EXPECT_THAT(lines, Contains(line));
  }
  EXPECT_THAT(lines, Not(Contains(HasSubstr("_FD="))));
  EXPECT_THAT(lines, Not(Contains(HasSubstr("OMP_NUM_THREADS"))));
}

TEST(WorkerEnv, IsRankZeroOfOneDeviceWhereLocalRanksAreVirtual) {
  const auto lines = WriteWorkerEnv({.rank = Rank(1),
                                     .world = 2,
                                     .local_rank = 1,
                                     .local_world = 2,
                                     .role = "trainer",
                                     .virtual_local_rank = true,
                                     .visible_devices = "5",
                                     .nccl_error_handling = "3"});
  for (const char* line : {"LOCAL_RANK=0", "RANK=1", "LOCAL_WORLD_SIZE=2", "CUDA_VISIBLE_DEVICES=5",
                           "ROLE_NAME=trainer", "TORCH_NCCL_ASYNC_ERROR_HANDLING=3"}) {
    EXPECT_THAT(lines, Contains(line));
  }
}

struct BadEnv {
  std::map<std::string, std::string> variables;
  const char* says;
};

TEST(WorkerEnv, NamesTheVariableThatIsWrong) {
  const BadEnv cases[] = {
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "RANK is 2, but WORLD_SIZE is 2"},
      {{{"RANK", "-1"}, {"WORLD_SIZE", "2"}}, "RANK is '-1'"},
      {{{"RANK", "0"}}, "RANK is set, but WORLD_SIZE is not"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "0"}}, "WORLD_SIZE is '0'"},
      {{{"RANK", "1x"}, {"WORLD_SIZE", "2"}}, "RANK is '1x'"},
      {{{"RANK", ""}, {"WORLD_SIZE", "2"}}, "RANK is ''"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "3"}}, "LOCAL_WORLD_SIZE is 3"},
      {{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "1"}, {"LOCAL_RANK", "1"}},
       "LOCAL_RANK is 1"},
      {{{"MUSTER_GENERATION", "0"}}, "MUSTER_GENERATION is '0'"},
      {{{"MUSTER_ARENA_FD", "-3"}}, "MUSTER_ARENA_FD is '-3'"},
      {{{"MUSTER_HEARTBEAT_FD", "99999999999"}}, "MUSTER_HEARTBEAT_FD"},
      {{{"MASTER_PORT", "65536"}}, "MASTER_PORT is '65536'"},
      {{{"MUSTER_CHECKPOINT_EVERY", "often"}}, "MUSTER_CHECKPOINT_EVERY is 'often'"},
  };
  for (const BadEnv& bad : cases) {
    const auto env = ReadWorkerEnv(From(bad.variables));
    ASSERT_FALSE(env.has_value()) << bad.says;
    EXPECT_EQ(env.error().code(), Code::kInvalid);
    EXPECT_THAT(env.error().message(), HasSubstr(bad.says));
  }
}

TEST(MergeEnviron, SetsWhatChangedAndKeepsTheRest) {
  EXPECT_THAT(MergeEnviron({"B=1", "PATH=/bin", "A=x=y"}, {"B=2", "C="}),
              ElementsAre("A=x=y", "B=2", "C=", "PATH=/bin"));
}

TEST(ProcessEnv, SeesWhatProcessEnvironLists) {
  const auto lines = ProcessEnviron();
  const EnvLookup lookup = ProcessEnv();
  for (const std::string& line : lines) {
    const auto equals = line.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    EXPECT_EQ(lookup(line.substr(0, equals)), line.substr(equals + 1));
  }
  EXPECT_EQ(lookup("MUSTER_NOBODY_SETS_THIS"), std::nullopt);
}

}  // namespace
}  // namespace muster::spec
