#include "agent/store/job_store.h"

#include "agent/store/store_process.h"

namespace muster::agent {

Result<std::uint16_t> JobStore::Open(Generation generation, const std::string& host) {
  if (process_.valid()) {
    auto port = OpenStore(process_.get(), generation, host);
    if (port || port.error().code() != Code::kUnavailable) return port;
    process_.Reset();
  }
  own_ = MUSTER_TRY(StoreServer::Listen(loop_, 0, host));
  return own_->port();
}

void JobStore::Close() {
  own_.reset();
  if (process_.valid() && !CloseStore(process_.get())) process_.Reset();
}

}  // namespace muster::agent
