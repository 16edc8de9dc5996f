#pragma once
// The network between the coordinator and its agents, on the world's clock: HTTP requests and event
// streams as net/ has them, without bytes on a wire. As over TCP a stream's bytes come in order or
// the stream ends; what may happen to them is: they are late, they are lost with the connection,
// a request arrives and its answer does not, or arrives twice, or long after its sender gave up.
// A host may be cut off for a while, in one direction or both.
//
// The network outlives the coordinator's routes and the agents' calls. Single-threaded.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/simulation/fate.h"
#include "net/http_client.h"
#include "net/http_server.h"

namespace muster::agent::simulation {

/// How often what happens to a request, or to a stream a second.
struct Weather {
  double refused = 0;    ///< the connection breaks before the request arrives
  double unheard = 0;    ///< it arrives, and the answer does not
  double doubled = 0;    ///< it arrives twice
  double straggles = 0;  ///< its sender hears of a broken connection, and it arrives later
  double breaks = 0;     ///< a stream, with each piece that it carries
  nanoseconds least = std::chrono::microseconds(50);
  nanoseconds most = milliseconds(5);  ///< of a way
};

class Pipe;
class Routes;
class Caller;

class Network {
 public:
  Network(World& world, Fate& fate) : world_(world), fate_(fate), life_(world.loop()) {}
  ~Network();

  std::unique_ptr<net::HttpRoutes> Serve(net::ServerOptions options);
  std::unique_ptr<net::HttpCalls> Connect(const std::string& host);

  void SetWeather(const Weather& weather) { weather_ = weather; }
  /// Whatever is on its way to or from `host` is held back until then; what waits longer than its
  /// sender does is lost.
  void CutOff(const std::string& host, bool to, bool from, nanoseconds how_long);
  /// The connections of `host` break. `silently`: the coordinator does not hear of it for a while.
  void Break(const std::string& host, bool silently);

 private:
  friend class Pipe;
  friend class Routes;
  friend class Caller;
  struct Cut {
    Instant to{}, from{};  ///< until then
  };

  nanoseconds Way() { return world_.Delay(weather_.least, weather_.most); }
  Instant ArrivesAt(const std::string& host, bool to_host);
  void Deliver(const std::string& host, const net::ClientRequest& request,
               std::function<void(net::Response)> answer);
  net::Response Ask(const net::ClientRequest& request);

  /// There is a coordinator that listens.
  bool Serves() const { return routes_ != nullptr && !fate_.dead(); }

  World& world_;
  Fate& fate_;
  Lifetime life_;
  Weather weather_;
  std::map<std::string, Cut> cuts_;
  Routes* routes_ = nullptr;
  std::vector<std::weak_ptr<Pipe>> pipes_;
};

}  // namespace muster::agent::simulation
