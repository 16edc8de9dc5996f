#pragma once
// Which route a request is for. A pattern is a path whose segments are literal or "{name}", which
// stands for one non-empty segment: "/v1/agents/{agent}/faults". A literal wins over a name. A path
// that is known with other methods only is told apart from one that is not. Pure.

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "net/http_message.h"

namespace muster::net {

class RouteTable {
 public:
  struct Match {
    std::size_t route;  ///< what Add returned
    std::map<std::string, std::string> bound;
  };

  /// The route's number, counting from 0. A pattern that is malformed or there already is a bug of
  /// ours (MUSTER_CHECK).
  std::size_t Add(Method method, std::string_view pattern);

  /// HEAD is answered by GET's route where it has none. NotFound: no such path. Invalid: the path
  /// takes other methods, which the hint names.
  Result<Match> Find(Method method, std::string_view path) const;

 private:
  struct Route {
    Method method;
    std::vector<std::string> segments;
  };
  std::vector<Route> routes_;
};

}  // namespace muster::net
