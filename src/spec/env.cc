#include "spec/env.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <limits>
#include <map>
#include <type_traits>
#include <utility>

namespace muster::spec {
namespace {

constexpr std::size_t kMaxData = 64;  // as many as a job file may name

/// Reads numbers and text by name; keeps the first thing that went wrong.
class Variables {
 public:
  explicit Variables(const EnvLookup& lookup) : lookup_(lookup) {}

  void Text(const std::string& name, std::string& out) {
    if (auto value = lookup_(name)) out = std::move(*value);
  }

  template <typename Number>
  bool Whole(const std::string& name, Number& out, Number least = 0,
             Number most = std::numeric_limits<Number>::max()) {
    const auto value = lookup_(name);
    if (!value) return false;
    Number number = 0;
    const char* end = value->data() + value->size();
    const auto [stop, error] = std::from_chars(value->data(), end, number);
    if (error != std::errc() || stop != end || number < least || number > most) {
      Fail(fmt::format("{} is '{}'; it takes a whole number from {} to {}", name, *value, least,
                       most));
      return false;
    }
    out = number;
    return true;
  }

  void Fail(std::string message) {
    if (!error_) {
      error_.emplace(Code::kInvalid, std::move(message),
                     "muster run and torchrun set these variables; unset them to run one process "
                     "by hand");
    }
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  const EnvLookup& lookup_;
  std::optional<Error> error_;
};

void ReadRanks(Variables& in, WorkerEnv& env) {
  std::uint32_t rank = 0;
  const bool has_rank = in.Whole("RANK", rank);
  const bool has_world = in.Whole("WORLD_SIZE", env.world, 1U);
  env.rank = Rank(rank);
  env.local_rank = rank;
  env.local_world = env.world;
  in.Whole("LOCAL_RANK", env.local_rank);
  in.Whole("LOCAL_WORLD_SIZE", env.local_world, 1U);
  if (has_rank != has_world) {
    in.Fail(fmt::format("{} is set, but {} is not", has_rank ? "RANK" : "WORLD_SIZE",
                        has_rank ? "WORLD_SIZE" : "RANK"));
  }
  if (rank >= env.world) {
    in.Fail(fmt::format("RANK is {}, but WORLD_SIZE is {}", rank, env.world));
  }
  if (env.local_world > env.world) {
    in.Fail(
        fmt::format("LOCAL_WORLD_SIZE is {}, but WORLD_SIZE is {}", env.local_world, env.world));
  }
  if (env.local_rank >= env.local_world) {
    in.Fail(fmt::format("LOCAL_RANK is {}, but LOCAL_WORLD_SIZE is {}", env.local_rank,
                        env.local_world));
  }
}

void ReadMuster(Variables& in, const EnvLookup& lookup, WorkerEnv& env) {
  std::uint64_t generation = env.generation.value();
  in.Whole<std::uint64_t>("MUSTER_GENERATION", generation, 1);
  env.generation = Generation(generation);
  in.Whole("MUSTER_HEARTBEAT_FD", env.heartbeat_fd, 0);
  in.Whole("MUSTER_ARENA_FD", env.arena_fd, 0);
  in.Whole("MUSTER_RECOVERY_FD", env.recovery_fd, 0);
  in.Text("MUSTER_RUN", env.run_folder);
  in.Text("MUSTER_GENERATION_FILE", env.generation_file);
  in.Text("MUSTER_CHECKPOINT_DIR", env.checkpoint_dir);
  in.Whole("MUSTER_CHECKPOINT_EVERY", env.checkpoint_every);
  for (std::size_t i = 0; i < kMaxData; ++i) {
    auto path = lookup(fmt::format("MUSTER_DATA_{}", i));
    if (!path) break;
    env.data.push_back(std::move(*path));
  }
}

void ReadElastic(Variables& in, WorkerEnv& env) {
  in.Text("MASTER_ADDR", env.master_addr);
  in.Whole<std::uint16_t>("MASTER_PORT", env.master_port);
  in.Whole("TORCHELASTIC_RESTART_COUNT", env.restart_count);
  in.Whole("TORCHELASTIC_MAX_RESTARTS", env.max_restarts);
  in.Text("TORCHELASTIC_RUN_ID", env.run_id);
  if (env.run_id == "none") env.run_id.clear();
  in.Text("TORCHELASTIC_ERROR_FILE", env.error_file);
  // OpenMP also takes lists ("4,2") and is nobody's but the user's: the first number, if there is
  // one.
  std::string threads;
  in.Text("OMP_NUM_THREADS", threads);
  std::from_chars(threads.data(), threads.data() + threads.size(), env.omp_threads);
}

/// Collects "NAME=value", leaving out what has no value.
class Writer {
 public:
  template <typename Value>
  void Set(std::string_view name, const Value& value) {
    lines_.push_back(fmt::format("{}={}", name, value));
  }
  void SetIf(std::string_view name, const std::string& value) {
    if (!value.empty()) Set(name, value);
  }
  std::vector<std::string> Take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

void WriteTorchrun(const WorkerEnv& env, Writer& out) {
  const std::uint32_t rank = env.rank.value();
  out.Set("RANK", rank);
  out.Set("LOCAL_RANK", env.virtual_local_rank ? 0 : env.local_rank);
  out.SetIf("CUDA_VISIBLE_DEVICES", env.visible_devices);
  out.Set("GROUP_RANK", rank / env.local_world);
  out.Set("ROLE_RANK", rank);
  out.Set("ROLE_NAME", env.role);
  out.Set("WORLD_SIZE", env.world);
  out.Set("LOCAL_WORLD_SIZE", env.local_world);
  out.Set("GROUP_WORLD_SIZE", (env.world + env.local_world - 1) / env.local_world);
  out.Set("ROLE_WORLD_SIZE", env.world);
  if (env.master_port != 0) {
    out.Set("MASTER_ADDR", env.master_addr);
    out.Set("MASTER_PORT", env.master_port);
  }
  out.Set("TORCHELASTIC_RESTART_COUNT", env.restart_count);
  out.Set("TORCHELASTIC_MAX_RESTARTS", env.max_restarts);
  out.Set("TORCHELASTIC_RUN_ID", env.run_id.empty() ? "none" : env.run_id);
  out.Set("TORCHELASTIC_USE_AGENT_STORE", "True");
  out.SetIf("TORCHELASTIC_ERROR_FILE", env.error_file);
  out.Set("TORCH_NCCL_ASYNC_ERROR_HANDLING", env.nccl_error_handling);
  if (env.omp_threads != 0) out.Set("OMP_NUM_THREADS", env.omp_threads);
  if (env.unbuffered) out.Set("PYTHONUNBUFFERED", 1);
}

std::string NameIn(const std::string& line) { return line.substr(0, line.find('=')); }

}  // namespace

void SetVariable(const std::string& line) {
  const auto mark = line.find('=');
  if (mark == std::string::npos) return;
  ::setenv(line.substr(0, mark).c_str(), line.substr(mark + 1).c_str(), 1);
}

void ForgetVariable(const std::string& name) { ::unsetenv(name.c_str()); }

EnvLookup ProcessEnv() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

std::vector<std::string> ProcessEnviron() {
  std::vector<std::string> lines;
  for (char** line = environ; line != nullptr && *line != nullptr; ++line) {
    lines.emplace_back(*line);
  }
  return lines;
}

std::vector<std::string> MergeEnviron(std::vector<std::string> base,
                                      const std::vector<std::string>& changes) {
  std::map<std::string, std::string> by_name;
  for (std::string& line : base) by_name.insert_or_assign(NameIn(line), std::move(line));
  for (const std::string& line : changes) by_name.insert_or_assign(NameIn(line), line);
  std::vector<std::string> merged;
  merged.reserve(by_name.size());
  for (auto& [name, line] : by_name) merged.push_back(std::move(line));
  return merged;
}

Result<WorkerEnv> ReadWorkerEnv(const EnvLookup& lookup) {
  WorkerEnv env;
  Variables in(lookup);
  ReadRanks(in, env);
  ReadMuster(in, lookup, env);
  ReadElastic(in, env);
  if (in.error()) return Error(*in.error());
  return env;
}

std::vector<std::string> WriteWorkerEnv(const WorkerEnv& env) {
  Writer out;
  WriteTorchrun(env, out);
  out.Set("MUSTER_GENERATION", env.generation.value());
  if (env.heartbeat_fd >= 0) out.Set("MUSTER_HEARTBEAT_FD", env.heartbeat_fd);
  if (env.arena_fd >= 0) out.Set("MUSTER_ARENA_FD", env.arena_fd);
  if (env.recovery_fd >= 0) out.Set("MUSTER_RECOVERY_FD", env.recovery_fd);
  out.SetIf("MUSTER_RUN", env.run_folder);
  out.SetIf("MUSTER_GENERATION_FILE", env.generation_file);
  out.SetIf("MUSTER_CHECKPOINT_DIR", env.checkpoint_dir);
  if (env.checkpoint_every != 0) out.Set("MUSTER_CHECKPOINT_EVERY", env.checkpoint_every);
  for (std::size_t i = 0; i < env.data.size(); ++i) {
    out.Set(fmt::format("MUSTER_DATA_{}", i), env.data[i]);
  }
  return out.Take();
}

}  // namespace muster::spec
