#include "agent/rules/rule_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

namespace muster::agent::rules {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr LogId kOut{Rank(0), Generation(1), Stream::kOut};

/// A thread under one rule whose first firing can be waited for.
class Watched {
 public:
  explicit Watched(const spec::LogRule& rule)
      : thread_(*RuleThread::Start(*RuleEngine::Create({rule}, 1), SystemClock(),
                                   [this](Firing firing) {
                                     if (fired_++ == 0) first_.set_value(std::move(firing));
                                   })) {
    thread_->Begin(Generation(1), {Generation(1)});
    thread_->Go();
  }
  ~Watched() { thread_->Stop(); }
  RuleThread* operator->() { return thread_.get(); }
  std::string Why() {
    auto first = first_.get_future();
    return first.wait_for(seconds(20)) == std::future_status::ready ? first.get().why : "nothing";
  }

 private:
  std::promise<Firing> first_;
  int fired_ = 0;
  std::unique_ptr<RuleThread> thread_;
};

TEST(RuleThread, PutsLinesTogetherFromTheBytesOfAPipe) {
  Watched watched({.name = "r", .pattern = "loss=(.*)"});
  watched->Bytes(kOut, "loss=1\rlo");
  watched->Bytes({Rank(0), Generation(1), Stream::kErr}, "loss=2\n");
  watched->Bytes(kOut, "ss=n");
  watched->Bytes(kOut, "an\nloss=3\n");
  EXPECT_EQ(watched.Why(), "'nan' is not a number");
}

TEST(RuleThread, HearsOnlyTheProcessesOfItsGeneration) {
  Watched watched({.name = "r", .pattern = "loss=(.*)"});
  watched->Begin(Generation(2), {Generation(2)});
  watched->Go();
  watched->Bytes(kOut, "loss=old\n");
  watched->Bytes({Rank(0), Generation(2), Stream::kOut}, "loss=new\n");
  EXPECT_EQ(watched.Why(), "'new' is not a number");
}

TEST(RuleThread, HearsWhoOutlivedTheGenerationBefore) {
  Watched watched({.name = "r", .pattern = "loss=(.*)"});
  watched->Bytes(kOut, "lo");
  watched->Begin(Generation(2), {Generation(1)});
  watched->Go();
  watched->Bytes(kOut, "ss=nan\n");
  EXPECT_EQ(watched.Why(), "'nan' is not a number");
}

TEST(RuleThread, SeesASilenceByItself) {
  Watched watched({.name = "r", .pattern = "step", .start_within = milliseconds(30)});
  EXPECT_EQ(watched.Why(), "no line matched within 30ms of the start");
}

TEST(RuleThread, JudgesAVeryLongLineByItsFirstPiece) {
  Watched watched({.name = "r", .pattern = "^bad=(.*)"});
  watched->Bytes(kOut, std::string(65'536, 'x') + "bad=1st\n");
  watched->Bytes(kOut, "bad=2nd\n");
  EXPECT_EQ(watched.Why(), "'2nd' is not a number");
}

TEST(RuleThread, CountsWhatItCouldNotTake) {
  Watched watched({.name = "r", .pattern = "loss=(.*)"});
  const std::string chunk(static_cast<std::size_t>(kMostWaiting.count) + 1, 'x');
  watched->Bytes(kOut, chunk);
  EXPECT_EQ(watched->TakeMissed(), chunk.size());
  EXPECT_EQ(watched->TakeMissed(), 0U);
  watched->Bytes(kOut, "loss=nan\n");
  EXPECT_EQ(watched.Why(), "'nan' is not a number");
}

}  // namespace
}  // namespace muster::agent::rules
