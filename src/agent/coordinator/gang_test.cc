#include "agent/coordinator/gang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A node that only remembers its orders; the test answers for it.
struct FakeNode final : Node {
  FakeNode(std::vector<Order>* orders_list, OnReport on_report)
      : orders(orders_list), report(std::move(on_report)) {}
  void Send(const Order& order) override {
    orders->push_back(order);
    if (on_renew && std::holds_alternative<order::Renew>(order)) on_renew();
  }
  void Poll() override { report(report::Progress{}); }
  std::vector<Order>* orders;
  OnReport report;
  std::function<void()> on_renew;
};

/// Two slots of two ranks.
class GangTest : public testing::Test {
 protected:
  GangTest() : loop_(*os::EventLoop::Create()) {
    gang_ = std::make_unique<Gang>(
        GangOptions{.slots = 2, .least = 2, .ranks_per_slot = 2, .join_limit = milliseconds(1)},
        *loop_, Hear());
  }
  OnReport Hear() {
    return [this](Report report) { reports_.push_back(std::move(report)); };
  }
  /// Of one to three slots; in the place of another one.
  template <typename... Place>
  void MakeElastic(const Place&... place) {
    gang_ = std::make_unique<Gang>(
        GangOptions{.slots = 3, .least = 1, .ranks_per_slot = 2, .last_call = milliseconds(1)},
        *loop_, Hear(), place...);
  }
  void LoseTheSecondOfThree() {
    MakeElastic();
    for (const char* name : {"a", "b", "c"}) Add(name);
    gang_->Send(StartAll());
    nodes_["b"]->report(report::Gone{"the connection closed"});
  }
  Gang::MakeNode Make(const std::string& name) {
    return [this, name](OnReport on_report) {
      auto node = std::make_unique<FakeNode>(&orders_[name], std::move(on_report));
      nodes_[name] = node.get();
      return node;
    };
  }
  void Add(const std::string& name) { gang_->Add({name, name}, Make(name)); }
  void AddTwo() {
    Add("a");
    Add("b");
  }
  template <typename T>
  std::vector<T> Ordered(const std::string& name) {
    std::vector<T> found;
    for (const Order& order : orders_[name]) {
      if (const auto* one = std::get_if<T>(&order)) found.push_back(*one);
    }
    return found;
  }
  template <typename T>
  std::vector<T> Reported() const {
    std::vector<T> found;
    for (const Report& report : reports_) {
      if (const auto* one = std::get_if<T>(&report)) found.push_back(*one);
    }
    return found;
  }
  static order::Start StartAll() {
    return {.generation = Generation(1), .ranks = {Rank(0), Rank(1), Rank(2), Rank(3)}};
  }

  std::unique_ptr<os::EventLoop> loop_;
  std::map<std::string, std::vector<Order>> orders_;
  std::map<std::string, FakeNode*> nodes_;
  std::vector<Report> reports_;
  std::unique_ptr<Gang> gang_;
};

TEST_F(GangTest, GivesEachNodeItsRanksOnceAllAreThere) {
  Add("a");
  gang_->Send(StartAll());
  EXPECT_TRUE(Ordered<order::Start>("a").empty());
  ASSERT_EQ(Reported<report::Waiting>().size(), 1);
  EXPECT_EQ(Reported<report::Waiting>()[0].missing, 1);
  Add("b");
  EXPECT_EQ(Ordered<order::Seat>("b").at(0).first, 2);
  EXPECT_THAT(Ordered<order::Start>("a").at(0).ranks, testing::ElementsAre(Rank(0), Rank(1)));
  EXPECT_THAT(Ordered<order::Start>("b").at(0).ranks, testing::ElementsAre(Rank(2), Rank(3)));
}

TEST_F(GangTest, FailsAStartForWhichTooFewNodesCome) {
  Add("a");
  gang_->Send(StartAll());
  while (Reported<report::Failed>().empty()) {
    ASSERT_TRUE(loop_->RunOnce(seconds(10)));
  }
  EXPECT_THAT(Reported<report::Failed>()[0].error.ToString(), testing::HasSubstr("1 node of 2"));
  Add("b");
  EXPECT_TRUE(Ordered<order::Start>("b").empty()) << "it is over";
}

TEST_F(GangTest, SendsWhatConcernsOneRankToItsNodeOnly) {
  AddTwo();
  gang_->Send(order::Kill{Rank(3)});
  EXPECT_TRUE(Ordered<order::Kill>("a").empty());
  EXPECT_EQ(Ordered<order::Kill>("b").size(), 1);
  gang_->Send(order::Abort{"because"});
  EXPECT_EQ(Ordered<order::Abort>("a").size(), 1);
  EXPECT_EQ(Ordered<order::Abort>("b").size(), 1);
}

TEST_F(GangTest, IsStoppedWhenEveryNodeIs) {
  AddTwo();
  gang_->Send(StartAll());
  gang_->Send(order::Stop{Generation(1), 15, seconds(1)});
  nodes_["b"]->report(report::Stopped{Generation(1), 1});
  EXPECT_TRUE(Reported<report::Stopped>().empty());
  nodes_["a"]->report(report::Stopped{Generation(1), 2});
  ASSERT_EQ(Reported<report::Stopped>().size(), 1);
  EXPECT_EQ(Reported<report::Stopped>()[0].left, 3);
}

TEST_F(GangTest, TakesTheAnswerToAnEarlierStopForNoAnswer) {
  AddTwo();
  gang_->Send(StartAll());
  gang_->Send(order::Stop{Generation(1), 15, {}});
  for (const char* name : {"a", "b"}) nodes_[name]->report(report::Stopped{Generation(1)});
  gang_->Send(order::Start{.generation = Generation(2), .ranks = StartAll().ranks});
  gang_->Send(order::Stop{Generation(2), 15, {}});
  for (const char* name : {"a", "b"}) nodes_[name]->report(report::Stopped{Generation(1)});
  EXPECT_EQ(Reported<report::Stopped>().size(), 1);
  for (const char* name : {"a", "b"}) nodes_[name]->report(report::Stopped{Generation(2)});
  EXPECT_EQ(Reported<report::Stopped>().size(), 2);
}

TEST_F(GangTest, DoesNotWaitForANodeThatIsGone) {
  AddTwo();
  gang_->Send(StartAll());
  gang_->Send(order::Stop{Generation(1), 15, seconds(1)});
  nodes_["a"]->report(report::Stopped{Generation(1)});
  nodes_["b"]->report(report::Gone{"the connection closed"});
  EXPECT_EQ(Reported<report::Stopped>().size(), 1);
  ASSERT_EQ(Reported<report::NodeLost>().size(), 1);
  EXPECT_EQ(Reported<report::NodeLost>()[0].name, "b");
  EXPECT_EQ(Reported<report::NodeLost>()[0].ranks, (RankRange{2, 2}));
  gang_->Send(order::Stop{Generation(1), 9, {}});
  EXPECT_EQ(Reported<report::Stopped>().size(), 2) << "nothing runs any more";
  gang_->Send(order::TellWords{Rank(2), Generation(1), Generation(1)});
  EXPECT_EQ(Reported<report::Words>().size(), 1) << "nobody is left to ask";
}

TEST_F(GangTest, GivesUpWhoDoesNotStopInTime) {
  AddTwo();
  gang_->Send(StartAll());
  gang_->Send(order::Stop{Generation(1), 15, {}});
  nodes_["a"]->report(report::Stopped{Generation(1)});
  gang_->Send(order::GiveUp{});
  EXPECT_EQ(Reported<report::NodeLost>().at(0).name, "b");
  EXPECT_EQ(Reported<report::Stopped>().size(), 1);
  gang_->Send(order::GiveUp{});
  EXPECT_EQ(Reported<report::NodeLost>().size(), 1);
}

TEST_F(GangTest, PutsASpareIntoTheSlotOfALostNode) {
  AddTwo();
  Add("spare");
  EXPECT_TRUE(orders_["spare"].empty());
  nodes_["a"]->report(report::Gone{"the connection closed"});
  gang_->Send(StartAll());
  EXPECT_EQ(Ordered<order::Seat>("spare").at(0).first, 0);
  EXPECT_THAT(Ordered<order::Start>("spare").at(0).ranks, testing::ElementsAre(Rank(0), Rank(1)));
  EXPECT_EQ(Ordered<order::Seat>("b").size(), 1) << "slots are stable";
}

TEST_F(GangTest, TellsOfNoLostRankWhereNothingRan) {
  Add("a");
  gang_->Send(StartAll());
  nodes_["a"]->report(report::Gone{"the connection closed"});
  EXPECT_EQ(Reported<report::NodeLost>().at(0).ranks.count, 0);
  AddTwo();
  EXPECT_EQ(Ordered<order::Start>("b").size(), 1) << "it went on waiting";
}

TEST_F(GangTest, GoesOnWithThoseThatAreThereWhereFewerWillDo) {
  MakeElastic();
  AddTwo();
  gang_->Send(StartAll());
  EXPECT_TRUE(Ordered<order::Start>("a").empty()) << "others may come for a moment";
  Add("c");
  EXPECT_EQ(Ordered<order::Start>("c").at(0).world, 6);
  EXPECT_TRUE(Reported<report::Resized>().empty());
  nodes_["a"]->report(report::Gone{"the connection closed"});
  gang_->Send(order::Stop{Generation(1), 15, {}});
  for (const char* name : {"b", "c"}) nodes_[name]->report(report::Stopped{Generation(1)});
  gang_->Send(order::Start{.generation = Generation(2)});
  ASSERT_EQ(Reported<report::Resized>().size(), 1);
  EXPECT_EQ(Reported<report::Resized>()[0].world, 4);
  EXPECT_EQ(Ordered<order::Seat>("b").back().first, 0) << "it moves up";
  EXPECT_EQ(Ordered<order::Seat>("c").back().first, 2);
  const order::Start part = Ordered<order::Start>("c").back();
  EXPECT_THAT(part.ranks, testing::ElementsAre(Rank(2), Rank(3)));
  EXPECT_EQ(part.world, 4);
}

TEST_F(GangTest, GoesOnWithoutANodeThatCannotDoItsPartButForTheFirstStart) {
  AddTwo();
  gang_->Send(StartAll());
  nodes_["b"]->report(report::Failed{Error(Code::kExhausted, "pipe: too many open files")});
  EXPECT_EQ(Reported<report::Failed>().size(), 1);
  gang_->Send(order::Start{.generation = Generation(2), .ranks = StartAll().ranks});
  nodes_["b"]->report(report::Failed{Error(Code::kExhausted, "pipe: too many open files")});
  EXPECT_EQ(Reported<report::Failed>().size(), 1);
  EXPECT_EQ(Reported<report::NodeLost>().at(0).reason, "pipe: too many open files");
}

TEST_F(GangTest, GoesOnWaitingWhenWhoCameForALostNodeCannotWork) {
  AddTwo();
  gang_->Send(StartAll());
  for (const char* name : {"a", "b"}) nodes_[name]->report(report::Gone{"the connection closed"});
  gang_->Send(order::Start{.generation = Generation(2), .ranks = StartAll().ranks});
  Add("c");  // another is still missing
  nodes_["c"]->report(report::Failed{Error(Code::kNotFound, "cd /work: no such file")});
  EXPECT_TRUE(Reported<report::Failed>().empty());
}

TEST_F(GangTest, TakesInWhoJoinedAtItsNextStart) {
  MakeElastic();
  Add("a");
  gang_->Send(StartAll());
  while (Ordered<order::Start>("a").empty()) ASSERT_TRUE(loop_->RunOnce(seconds(10)));
  EXPECT_EQ(Ordered<order::Start>("a")[0].world, 2);
  Add("b");
  EXPECT_TRUE(Ordered<order::Start>("b").empty()) << "not in the middle";
  nodes_["b"]->report(report::Progress{});
  EXPECT_TRUE(Reported<report::Progress>().empty()) << "it has no ranks yet";
  gang_->Send(order::Stop{Generation(1), 15, {}});
  for (const char* name : {"a", "b"}) nodes_[name]->report(report::Stopped{Generation(1)});
  EXPECT_EQ(Reported<report::Stopped>().size(), 1);
  gang_->Send(order::Start{.generation = Generation(2)});
  EXPECT_EQ(Reported<report::Resized>().back().world, 4);
  EXPECT_THAT(Ordered<order::Start>("b").at(0).ranks, testing::ElementsAre(Rank(2), Rank(3)));
}

TEST_F(GangTest, StopsSurvivorsBeforeRanksAreNumberedAnew) {
  LoseTheSecondOfThree();
  reports_.clear();
  // In place: the others stand at a step boundary.
  gang_->Send(order::Start{.generation = Generation(2),
                           .ranks = {Rank(2), Rank(3)},
                           .keepers = {Rank(0), Rank(1), Rank(4), Rank(5)}});
  ASSERT_EQ(Reported<report::Resized>().size(), 1) << "first of all";
  for (const char* name : {"a", "c"}) {
    EXPECT_EQ(Ordered<order::Stop>(name).size(), 1);
    EXPECT_EQ(Ordered<order::Start>(name).size(), 1) << "they still run";
  }
  nodes_["c"]->report(report::Exited{Rank(5), Generation(1)});
  EXPECT_TRUE(Reported<report::Exited>().empty()) << "there is no such rank any more";
  for (const char* name : {"a", "c"}) nodes_[name]->report(report::Stopped{Generation(1)});
  EXPECT_TRUE(Reported<report::Stopped>().empty()) << "nobody ordered it";
  EXPECT_EQ(Ordered<order::Seat>("c").back().first, 2);
  const order::Start part = Ordered<order::Start>("c").back();
  EXPECT_THAT(part.ranks, testing::ElementsAre(Rank(2), Rank(3)));
  EXPECT_TRUE(part.keepers.empty());
}

TEST_F(GangTest, WaitsForTheSurvivorsThatItStopsEvenIfSomebodyJoins) {
  LoseTheSecondOfThree();
  gang_->Send(order::Start{.generation = Generation(2),
                           .ranks = {Rank(2), Rank(3)},
                           .keepers = {Rank(0), Rank(1), Rank(4), Rank(5)}});
  Add("d");
  EXPECT_TRUE(Ordered<order::Start>("d").empty()) << "the survivors still run";
  for (const char* name : {"a", "c"}) nodes_[name]->report(report::Stopped{Generation(1)});
  EXPECT_EQ(Reported<report::Resized>().back().world, 6);
  const order::Start part = Ordered<order::Start>("c").back();
  EXPECT_EQ(part.ranks.size(), 2);
  EXPECT_TRUE(part.keepers.empty()) << "nobody was left to keep";
}

TEST_F(GangTest, KnowsInAnotherProcessWhichSizeItHadTold) {
  LoseTheSecondOfThree();
  gang_->Send(order::Start{.generation = Generation(2), .keepers = {Rank(0), Rank(4)}});
  EXPECT_EQ(Reported<report::Resized>().back().world, 4) << "while the survivors are stopped";
  const GangPlace place = gang_->place();
  MakeElastic(place);
  for (const char* name : {"a", "c"}) gang_->Attach(name, Make(name));
  Add("d");
  gang_->Send(order::Start{.generation = Generation(3), .ranks = {Rank(0), Rank(2)}});
  EXPECT_EQ(Reported<report::Resized>().back().world, 6);
  EXPECT_THAT(Ordered<order::Start>("c").back().ranks, testing::ElementsAre(Rank(4), Rank(5)));
}

TEST_F(GangTest, GoesOnStartingWhenASurvivorIsLostWhileItIsStopped) {
  LoseTheSecondOfThree();
  gang_->Send(order::Start{.generation = Generation(2), .keepers = {Rank(0), Rank(4)}});
  nodes_["a"]->report(report::Stopped{Generation(1)});
  nodes_["c"]->report(report::Gone{"the connection closed"});
  EXPECT_EQ(Reported<report::NodeLost>().back().ranks.count, 0);
  const order::Start part = Ordered<order::Start>("a").back();
  EXPECT_EQ(part.generation, Generation(2));
  EXPECT_EQ(part.world, 2);
}

TEST_F(GangTest, DoesNotStopSurvivorsForThoseThatJoined) {
  MakeElastic();
  AddTwo();
  gang_->Send(StartAll());
  while (Ordered<order::Start>("a").empty()) ASSERT_TRUE(loop_->RunOnce(seconds(10)));
  Add("c");
  nodes_["a"]->report(report::Gone{"the connection closed"});
  gang_->Send(order::Start{
      .generation = Generation(2), .ranks = {Rank(0), Rank(1)}, .keepers = {Rank(2), Rank(3)}});
  EXPECT_TRUE(Ordered<order::Stop>("b").empty());
  EXPECT_THAT(Ordered<order::Start>("b").back().keepers, testing::ElementsAre(Rank(2), Rank(3)));
  EXPECT_EQ(Ordered<order::Seat>("c").back().first, 0) << "it is the one that is needed";
  EXPECT_THAT(Ordered<order::Start>("c").back().ranks, testing::ElementsAre(Rank(0), Rank(1)));
}

TEST_F(GangTest, GivesANodeThatLostItsShimAnother) {
  AddTwo();
  gang_->Send(StartAll());
  nodes_["a"]->report(report::Lost{"killed by SIGKILL"});
  ASSERT_EQ(Reported<report::NodeLost>().size(), 1);
  EXPECT_TRUE(Reported<report::NodeLost>()[0].shim);
  EXPECT_EQ(Reported<report::NodeLost>()[0].reason, "killed by SIGKILL");
  gang_->Send(order::Stop{Generation(1), 15, {}});
  nodes_["b"]->report(report::Stopped{Generation(1)});
  EXPECT_EQ(Reported<report::Stopped>().size(), 1);
  gang_->Send(StartAll());
  EXPECT_EQ(Ordered<order::Renew>("a").size(), 1);
  EXPECT_EQ(Ordered<order::Start>("a").size(), 2);
  EXPECT_TRUE(Ordered<order::Renew>("b").empty());
}

TEST_F(GangTest, GivesANodeOneNewShimWhenAllGetOne) {
  AddTwo();
  gang_->Send(StartAll());
  nodes_["a"]->report(report::Lost{"killed by SIGKILL"});
  gang_->Send(order::Renew{});
  gang_->Send(StartAll());
  for (const char* name : {"a", "b"}) EXPECT_EQ(Ordered<order::Renew>(name).size(), 1) << name;
}

TEST_F(GangTest, StartsNothingOnANodeWhoseNewShimIsLostAtOnce) {
  AddTwo();
  gang_->Send(StartAll());
  nodes_["a"]->report(report::Lost{"killed by SIGKILL"});
  gang_->Send(order::Stop{Generation(1), 15, {}});
  nodes_["b"]->report(report::Stopped{Generation(1)});
  nodes_["a"]->on_renew = [node = nodes_["a"]] { node->report(report::Lost{"which died"}); };
  gang_->Send(order::Start{.generation = Generation(2), .ranks = StartAll().ranks});
  EXPECT_EQ(Ordered<order::Start>("a").size(), 1);
  EXPECT_EQ(Reported<report::NodeLost>().back().ranks, (RankRange{0, 2}));
  nodes_["a"]->on_renew = {};
  gang_->Send(order::Start{.generation = Generation(3), .ranks = StartAll().ranks});
  EXPECT_EQ(Ordered<order::Renew>("a").size(), 2);
  EXPECT_EQ(Ordered<order::Start>("a").size(), 2);
}

TEST_F(GangTest, LetsTheNodeOfThisProcessGiveUpItsShimAlone) {
  gang_->Add({.name = "here"}, [&](OnReport on_report) {
    auto node = std::make_unique<FakeNode>(&orders_["here"], std::move(on_report));
    nodes_["here"] = node.get();
    return node;
  });
  Add("b");
  gang_->Send(StartAll());
  gang_->Send(order::Stop{Generation(1), 15, {}});
  gang_->Send(order::GiveUp{});
  EXPECT_EQ(Ordered<order::GiveUp>("here").size(), 1);
  ASSERT_EQ(Reported<report::NodeLost>().size(), 1);
  EXPECT_EQ(Reported<report::NodeLost>()[0].name, "b");
  nodes_["here"]->report(report::Lost{"which did not answer and was killed"});
  EXPECT_EQ(Reported<report::Stopped>().size(), 1);
  nodes_["here"]->report(report::Stopped{Generation(1)});
  EXPECT_EQ(Reported<report::Stopped>().size(), 1) << "its answer comes behind its loss";
}

TEST_F(GangTest, TellsOfTheRanksOfANodeThatFindsNoOtherShim) {
  AddTwo();
  gang_->Send(StartAll());
  nodes_["a"]->report(report::Lost{"muster-shim died"});
  gang_->Send(order::Stop{Generation(1), 15, {}});
  nodes_["b"]->report(report::Stopped{Generation(1)});
  // The node of this process answers at once.
  nodes_["a"]->on_renew = [node = nodes_["a"]] {
    node->report(report::Failed{Error(Code::kExhausted, "no process can be started")});
  };
  gang_->Send(order::Start{.generation = Generation(2), .ranks = StartAll().ranks});
  EXPECT_EQ(Reported<report::NodeLost>().back().ranks, (RankRange{0, 2}));
  EXPECT_EQ(Ordered<order::Start>("b").size(), 2);
  gang_->Send(order::Stop{Generation(2), 15, {}});
  nodes_["b"]->report(report::Stopped{Generation(2)});
  EXPECT_EQ(Reported<report::Stopped>().size(), 2);
}

TEST_F(GangTest, PrefersASpareThatIsReadyAndGivesOneWithoutAShimAnother) {
  AddTwo();
  for (const char* name : {"slow", "hurt", "ready"}) Add(name);
  nodes_["hurt"]->report(report::ZygoteReady{1});
  nodes_["hurt"]->report(report::Lost{"muster-shim died"});
  nodes_["ready"]->report(report::ZygoteReady{1});
  nodes_["a"]->report(report::Gone{"the connection closed"});
  gang_->Send(StartAll());
  EXPECT_EQ(Ordered<order::Start>("ready").size(), 1);
  nodes_["slow"]->report(report::Gone{"the connection closed"});
  nodes_["b"]->report(report::Gone{"the connection closed"});
  gang_->Send(StartAll());
  EXPECT_EQ(Ordered<order::Renew>("hurt").size(), 1);
  EXPECT_EQ(Ordered<order::Start>("hurt").size(), 1);
}

TEST_F(GangTest, ForgetsASpareThatGoes) {
  AddTwo();
  Add("spare");
  nodes_["spare"]->report(report::Gone{"the connection closed"});
  EXPECT_TRUE(Reported<report::NodeLost>().empty());
  nodes_["b"]->report(report::Gone{"the connection closed"});
  gang_->Send(StartAll());
  EXPECT_EQ(Reported<report::Waiting>().size(), 1);
}

TEST_F(GangTest, EndsWhenEveryNodeHasAndTellsTheSpares) {
  AddTwo();
  Add("spare");
  gang_->Send(order::End{});
  EXPECT_EQ(Ordered<order::End>("spare").size(), 1);
  nodes_["a"]->report(report::Ended{true, ""});
  EXPECT_TRUE(Reported<report::Ended>().empty());
  nodes_["b"]->report(report::Ended{false, "/sys/fs/cgroup/x"});
  EXPECT_TRUE(Reported<report::Ended>().empty()) << "the spare has not left yet";
  nodes_["spare"]->report(report::Ended{});
  ASSERT_EQ(Reported<report::Ended>().size(), 1);
  EXPECT_TRUE(Reported<report::Ended>()[0].hung_writer);
  EXPECT_EQ(Reported<report::Ended>()[0].left_cgroup, "/sys/fs/cgroup/x");
}

TEST_F(GangTest, EndsAtOnceWithoutAnyNode) {
  gang_->Send(order::End{});
  EXPECT_EQ(Reported<report::Ended>().size(), 1);
}

}  // namespace
}  // namespace muster::agent
