#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "agent/remote/batch.h"
#include "agent/remote/remote_peer.h"
#include "agent/remote/ssh_agents.h"
#include "agent/remote/ticket.h"
#include "agent/wire/wire.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

JobTicket ATicket() {
  return {.agent = "a1",
          .run_id = "ab12",
          .folder = "/runs/x",
          .cwd = "/work",
          .job_yaml = "kind: Job\n",
          .flags = {"--grace", "5"},
          .ranks = 8,
          .ranks_per_node = 4,
          .lease = seconds(15)};
}

TEST(Ticket, ReadsBackAsItWasWritten) {
  const auto ticket = ParseTicket(FormatTicket(ATicket()));
  ASSERT_TRUE(ticket) << ticket.error().ToString();
  EXPECT_EQ(FormatTicket(*ticket), FormatTicket(ATicket()));
  EXPECT_EQ(ticket->flags, ATicket().flags);
}

TEST(Ticket, IsRefusedWhenItsNumbersContradictEachOther) {
  JobTicket ticket = ATicket();
  ticket.ranks = 9;
  EXPECT_FALSE(ParseTicket(FormatTicket(ticket)));
  ticket.ranks_per_node = 0;
  EXPECT_FALSE(ParseTicket(FormatTicket(ticket)));
  ticket = ATicket();
  ticket.run_id = "../../etc";
  EXPECT_FALSE(ParseTicket(FormatTicket(ticket))) << "it becomes part of a path";
}

TEST(Join, TakesNamesThatAFileMayHave) {
  for (const char* name : {"n1", "node-7.example", "A_b"}) {
    EXPECT_TRUE(ParseJoin(FormatJoin({.version = "1", .name = name})));
  }
  const std::string longest(65, 'n');
  for (const std::string& name : {std::string(), std::string("a b"), std::string("a/b"), longest}) {
    EXPECT_FALSE(ParseJoin(FormatJoin({.version = "1", .name = name})));
  }
}

TEST(Join, NamesBothSidesWhenTheirVersionsDoNotFit) {
  JoinRequest request{.version = "0.9", .name = "n1"};
  EXPECT_EQ(WhyNotTogether(request, "1.0"), "");
  request.protocol = 7;
  EXPECT_THAT(WhyNotTogether(request, "1.0"),
              testing::AllOf(testing::HasSubstr("muster 1.0"), testing::HasSubstr("muster 0.9"),
                             testing::HasSubstr("version 7")));
}

TEST(Batch, ReadsBackAsItWasWritten) {
  const ReportBatch batch{.first = 17,
                          .seen = 4,
                          .sent = Instant(seconds(12)),
                          .reports = {R"({"report":"begun","gen":3})", R"({"report":"stopped"})"}};
  const auto read = ParseBatch(FormatBatch(batch));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->first, 17);
  EXPECT_EQ(read->seen, 4);
  EXPECT_EQ(read->sent, batch.sent);
  EXPECT_EQ(read->reports, batch.reports);
  EXPECT_TRUE(ParseBatch(FormatBatch({})));
}

TEST(Batch, RefusesWhatIsNone) {
  for (const char* text : {"", "[]", "{}", R"({"first":0,"seen":0,"sent_ns":0,"reports":[]})",
                           R"({"first":-1,"seen":0,"sent_ns":0,"reports":[]})",
                           R"({"first":1,"seen":0,"sent_ns":18446744073709551615,"reports":[]})",
                           R"({"first":1,"seen":0,"sent_ns":0,"reports":{}})"}) {
    EXPECT_FALSE(ParseBatch(text)) << text;
  }
}

class RemotePeerTest : public testing::Test {
 protected:
  RemotePeerTest()
      : loop_(*os::EventLoop::Create()),
        peer_(std::make_shared<RemotePeer>(*loop_, "n1", 2, milliseconds(50))) {
    peer_->HearWith([this](Report report) { heard_.push_back(std::move(report)); });
    peer_->Send(order::Seat{2});
  }
  static ReportBatch Batch(std::uint64_t first, const std::vector<Report>& reports) {
    ReportBatch batch{.first = first, .sent = MonotonicClock::now()};
    for (const Report& report : reports) batch.reports.push_back(wire::Encode(report));
    return batch;
  }

  std::unique_ptr<os::EventLoop> loop_;
  std::shared_ptr<RemotePeer> peer_;
  std::vector<Report> heard_;
};

TEST_F(RemotePeerTest, TakesEachReportOnce) {
  const Report one = report::Stopped{Generation(1), 1};
  const Report two = report::Stopped{Generation(1), 2};
  EXPECT_TRUE(peer_->Take(Batch(1, {one})));
  EXPECT_TRUE(peer_->Take(Batch(1, {one, two}))) << "the answer to the first was lost";
  EXPECT_EQ(peer_->taken(), 2);
  EXPECT_TRUE(peer_->Take(Batch(3, {}))) << "it only says that it lives";
  EXPECT_EQ(peer_->taken(), 2);
  ASSERT_EQ(heard_.size(), 2);
  EXPECT_EQ(std::get<report::Stopped>(heard_[1]).left, 2);
}

TEST_F(RemotePeerTest, RefusesABatchBehindAGap) {
  EXPECT_FALSE(peer_->Take(Batch(2, {report::Stopped{Generation(1), 1}})));
  EXPECT_TRUE(heard_.empty());
}

TEST_F(RemotePeerTest, LetsGoOfAnAgentThatSpeaksOfRanksOfOthers) {
  const auto taken = peer_->Take(Batch(1, {report::Started{Rank(1), Generation(1), 7, true}}));
  EXPECT_FALSE(taken);
  ASSERT_EQ(heard_.size(), 1);
  EXPECT_THAT(std::get<report::Gone>(heard_[0]).reason, testing::HasSubstr("'rank' is 1"));
  EXPECT_TRUE(peer_->Take(Batch(2, {report::Stopped{Generation(1), 1}})));
  EXPECT_EQ(heard_.size(), 1) << "nothing is heard of it any more";
}

TEST_F(RemotePeerTest, IsGoneWhenTheAgentLeaves) {
  EXPECT_TRUE(peer_->Take(
      Batch(1, {report::Gone{"it was told to end"}, report::Stopped{Generation(1), 1}})));
  ASSERT_EQ(heard_.size(), 1);
  EXPECT_EQ(std::get<report::Gone>(heard_[0]).reason, "it was told to end");
}

TEST_F(RemotePeerTest, IsGoneWhenNothingIsHeardForTheLease) {
  while (heard_.empty()) ASSERT_TRUE(loop_->RunOnce(seconds(10)));
  EXPECT_EQ(std::get<report::Gone>(heard_[0]).reason, "nothing was heard of it for 50 ms");
}

TEST(Handover, ReadsWhatMusterRunSendsAndNothingBehindIt) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const std::string sent = "TOKEN\n[\"A=1\",\"B=x=y\"]\nrest";
  ASSERT_EQ(::write(ends[1], sent.data(), sent.size()), static_cast<ssize_t>(sent.size()));
  const auto handover = ReadHandover(ends[0]);
  ASSERT_TRUE(handover) << handover.error().ToString();
  EXPECT_EQ(handover->token, "TOKEN");
  EXPECT_THAT(handover->environment, testing::ElementsAre("A=1", "B=x=y"));
  std::array<char, 8> rest{};
  EXPECT_EQ(::read(ends[0], rest.data(), rest.size()), 4);
  ::close(ends[1]);
  EXPECT_FALSE(ReadHandover(ends[0])) << "it ended";
  ::close(ends[0]);
}

TEST(Handover, LeavesOutWhatBelongsToThisHost) {
  EXPECT_THAT(VariablesForNodes({"PATH=/bin", "HOME=/root", "PYTHONPATH=/x", "NCCL_DEBUG=INFO",
                                 "SSH_AUTH_SOCK=/tmp/a", "AWS_SECRET_ACCESS_KEY=s", "HOSTNAME=h"}),
              testing::ElementsAre("PATH=/bin", "PYTHONPATH=/x", "NCCL_DEBUG=INFO"));
}

}  // namespace
}  // namespace muster::agent
