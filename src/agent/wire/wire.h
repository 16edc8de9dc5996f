#pragma once
// Orders and reports (node/messages.h) as JSON, for a node of another process: docs/formats/
// node-protocol.md is the layout, golden/ has one file a message. A text that is no message, or one
// that speaks of other ranks than its node has, is refused whole, with what is wrong with it.
//
// Times on the wire are nanoseconds of the sender's CLOCK_MONOTONIC; whoever reads says what to add
// to make them its own. Bytes that are no UTF-8 are replaced. `ranks` are those of the node.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/launch/rank_range.h"
#include "agent/node/messages.h"
#include "base/result.h"

namespace muster::agent::wire {

/// One line without a newline. Of messages that have a name there: what only gangs are told and
/// tell (GiveUp, Waiting, Resized, NodeLost) has none.
std::string Encode(const Order& order);
std::string Encode(const Report& report);

/// Invalid: not a message of this version.
Result<Order> DecodeOrder(std::string_view text, RankRange ranks);
/// `offset` is added to every time.
Result<Report> DecodeReport(std::string_view text, RankRange ranks,
                            std::chrono::nanoseconds offset);

}  // namespace muster::agent::wire
