#include "agent/stacks/stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/stacks/clusters.h"

namespace muster::agent::stacks {
namespace {

const Frame kWait{"pthread_cond_wait", "libc.so.6", ""};
const Frame kFutex{"__futex_wait", "libc.so.6", ""};

Process At(std::uint32_t rank, std::vector<Frame> native, std::vector<Frame> python = {}) {
  Process process{.rank = rank, .pid = static_cast<int>(100 + rank), .name = "train"};
  process.threads.push_back({.tids = {process.pid},
                             .name = "train",
                             .native = std::move(native),
                             .python = std::move(python)});
  return process;
}

TEST(StacksJson, ComesBackAsItWas) {
  std::vector<Process> processes = {
      At(3, {kFutex, kWait, {"a::b", "liba.so", "b.cc:7"}}, {{"<module>", "", "train.py:3"}})};
  processes[0].threads[0].tids.push_back(7);
  processes[0].threads.push_back({.tids = {8}, .name = "\"odd\"\n", .missing = "it is gone"});
  processes.push_back({.rank = 4, .pid = 9, .state = "D", .missing = "m", .python_missing = "p"});
  const auto back = FromJson(ToJson(processes));
  ASSERT_TRUE(back) << back.error().ToString();
  EXPECT_EQ(*back, processes);
}

TEST(StacksJson, IsRefusedWhenItIsSomethingElse) {
  EXPECT_FALSE(FromJson(""));
  EXPECT_FALSE(FromJson("{}"));
  EXPECT_FALSE(FromJson(R"({"format":"muster-stacks/2","processes":[]})"));
  EXPECT_FALSE(FromJson(R"({"format":"muster-stacks/1"})"));
  EXPECT_FALSE(FromJson(R"({"format":"muster-stacks/1","processes":[{"rank":-1}]})"));
  EXPECT_FALSE(FromJson(R"({"format":"muster-stacks/1","processes":[7]})"));
  EXPECT_FALSE(FromJson(std::string(5 << 20, ' ')));
  EXPECT_TRUE(FromJson(R"({"format":"muster-stacks/1","processes":[]})"));
}

TEST(ClustersOf, PutsTheOutlierFirst) {
  const Frame loop{"Train", "train", ""};
  const Frame reduce{"AllReduce", "libgloo.so", ""};
  // The leaf of one that turns differs from moment to moment.
  const std::vector<Process> processes = {At(0, {kWait, reduce, loop}),
                                          At(1, {kFutex, reduce, loop}), At(2, {kWait, loop}),
                                          At(3, {reduce, loop})};
  const auto clusters = ClustersOf(processes);
  ASSERT_EQ(clusters.size(), 2u);
  EXPECT_THAT(clusters[0].ranks, testing::ElementsAre(2));
  EXPECT_THAT(clusters[1].ranks, testing::ElementsAre(0, 1, 3));
  EXPECT_EQ(clusters[1].example, &processes[0]);
}

TEST(ClustersOf, TellsLinesOfAScriptApart) {
  const Frame eval{"_PyEval_EvalFrameDefault", "libpython3.11.so.1.0", "ceval.c:1"};
  const std::vector<Process> processes = {At(0, {eval}, {{"step", "", "train.py:3"}}),
                                          At(1, {eval}, {{"step", "", "train.py:4"}})};
  EXPECT_EQ(ClustersOf(processes).size(), 2u);
}

TEST(PlaceOf, NamesTheCallAndWhoMadeIt) {
  const Frame eval{"_PyEval_EvalFrameDefault", "python3.11", ""};
  const Frame reduce{"gloo::AllReduce", "libgloo.so", "reduce.cc:7"};
  EXPECT_EQ(PlaceOf(At(0, {kFutex, kWait, reduce, {"main", "train", ""}})),
            "pthread_cond_wait < gloo::AllReduce (reduce.cc:7) < main");
  EXPECT_EQ(PlaceOf(At(0, {kWait, eval, reduce}, {{"step", "", "train.py:3"}})),
            "pthread_cond_wait < step (train.py:3)");
  EXPECT_EQ(PlaceOf(At(0, {kFutex, kWait})), "pthread_cond_wait");
  EXPECT_EQ(PlaceOf({.missing = "it is gone"}), "it is gone");
  EXPECT_LE(PlaceOf(At(0, {{std::string(900, 'x'), "a.so", std::string(900, 'y')}})).size(), 210u);
}

TEST(RankList, JoinsNeighbours) {
  EXPECT_EQ(RankList({0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
  EXPECT_EQ(RankList({4}), "4");
  EXPECT_EQ(RankList({}), "");
}

}  // namespace
}  // namespace muster::agent::stacks
