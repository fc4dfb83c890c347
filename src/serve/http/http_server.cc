#include "serve/http/http_server.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/socket.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "serve/http/connection.h"
#include "serve/http/event_loop.h"
#include "serve/http/listener.h"

namespace deltafin::serve {
namespace {

// Connections that are told that there are too many; who comes then is not even told.
constexpr size_t kRefusals = 32;

// Accepted in a row before others have their turn.
constexpr int kAcceptances = 16;

class BeastServer final : public HttpServer {
 public:
  BeastServer(const HttpOptions& options, Handler handler, const Listener& listener)
      : port_(listener.port) {
    hub_.loop = loop_;
    hub_.aside = aside_;
    hub_.limits = options.limits;
    hub_.rules = {.api_key = options.api_key,
                  .allowed_origins = options.allowed_origins,
                  .allowed_hosts = options.allowed_hosts,
                  .address = listener.address,
                  .beyond_loopback = listener.beyond_loopback};
    hub_.handler = std::move(handler);
    hub_.answer_over = [this] { tell_answering(); };
  }

  ~BeastServer() override {
    hub_.closing = true;
    aside_->close();
    if (aside_thread_.joinable()) aside_thread_.join();
    if (!thread_.joinable()) return;
    loop_->post([this] {
      close_all();
      loop_->close();
    });
    thread_.join();
  }

  Status run(io::Descriptor socket);

  uint16_t port() const override { return port_; }
  bool drain(std::chrono::milliseconds limit) override;
  HttpCounters snapshot() const override;

 private:
  void watch_listener();
  void accept_some();
  void add(io::Descriptor socket);
  void close_listener();
  void close_all();
  void tell_answering();

  const uint16_t port_;
  const std::shared_ptr<EventLoop> loop_ = std::make_shared<EventLoop>();
  const std::shared_ptr<EventLoop> aside_ = std::make_shared<EventLoop>();
  ConnectionHub hub_;
  std::unique_ptr<Watch> listener_;
  Timer pause_{*loop_};
  std::thread thread_, aside_thread_;

  std::mutex mutex_;  // of the following
  std::condition_variable changed_;
  size_t answering_ = 0;
  bool drained_ = false, all_closed_ = false;
};

Status BeastServer::run(io::Descriptor socket) {
  listener_ = Watch::open(*loop_, std::move(socket));
  if (!listener_) return fail(ErrorCode::Io, "cannot watch the listening socket");
  watch_listener();
  // Signals are for the threads that know what to do with them.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  aside_thread_ = std::thread([this] { aside_->run(); });
  thread_ = std::thread([this] { loop_->run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return {};
}

void BeastServer::watch_listener() {
  listener_->when_readable([this] { accept_some(); });
}

void BeastServer::accept_some() {
  for (int i = 0; i < kAcceptances; ++i) {
    const int socket =
        ::accept4(listener_->descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0) {
      add(io::Descriptor(socket));
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) break;
    if (errno == EINTR || errno == ECONNABORTED) continue;
    // No descriptors or no memory. The connection stays in the queue and the listener ready, so
    // without a pause we would spin.
    pause_.start(hub_.limits.accept_pause, [this] { watch_listener(); });
    return;
  }
  watch_listener();
}

void BeastServer::add(io::Descriptor socket) {
  const size_t open = hub_.open.size();
  const bool refused = open >= hub_.limits.connections;
  if (refused) ++hub_.refused;
  if (open >= hub_.limits.connections + kRefusals) return;
  std::unique_ptr<Watch> watch = Watch::open(*loop_, std::move(socket));
  if (!watch) return;
  ++hub_.connections;
  ++hub_.connections_now;
  const auto connection = std::make_shared<Connection>(hub_, std::move(watch));
  hub_.open.insert(connection);
  if (!refused) return connection->start();
  connection->refuse({.status = 503,
                      .message = "too many connections: close some, or try again later",
                      .type = "server_busy",
                      .code = "too_many_connections"});
}

void BeastServer::close_listener() {
  pause_.stop();
  listener_->close();
}

void BeastServer::close_all() {
  close_listener();
  while (!hub_.open.empty()) (*hub_.open.begin())->close();
}

void BeastServer::tell_answering() {
  const std::lock_guard lock(mutex_);
  answering_ = hub_.answering;
  changed_.notify_all();
}

bool BeastServer::drain(std::chrono::milliseconds limit) {
  loop_->post([this] {
    close_listener();
    hub_.draining = true;
    const std::set<std::shared_ptr<Connection>> open = hub_.open;
    for (const std::shared_ptr<Connection>& connection : open) connection->drain();
    tell_answering();
    const std::lock_guard lock(mutex_);
    drained_ = true;
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return drained_; });
  const bool ended = changed_.wait_for(lock, limit, [this] { return answering_ == 0; });
  lock.unlock();
  loop_->post([this] {
    close_all();
    const std::lock_guard closed(mutex_);
    all_closed_ = true;
    changed_.notify_all();
  });
  lock.lock();
  changed_.wait(lock, [this] { return all_closed_; });
  return ended;
}

HttpCounters BeastServer::snapshot() const {
  return {.connections_now = hub_.connections_now,
          .connections = hub_.connections,
          .refused = hub_.refused,
          .requests = hub_.requests,
          .bytes_in = hub_.bytes_in,
          .bytes_out = hub_.bytes_out};
}

}  // namespace

const std::string* HttpRequest::header(std::string_view name) const {
  for (const auto& [known, value] : headers)
    if (known == name) return &value;
  return nullptr;
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpOptions& options, bool insecure,
                                                      Handler handler) {
  if (options.api_key && options.api_key->empty())
    return fail(ErrorCode::Usage, "--api-key-file: the key is empty");
  TRY(Listener listener,
      listen_at(options.host, options.port, insecure || options.api_key.has_value()));
  try {
    auto server = std::make_unique<BeastServer>(options, std::move(handler), listener);
    TRY_STATUS(server->run(std::move(listener.socket)));
    return server;
  } catch (const std::exception& error) {
    // Asio or std::thread: no descriptor, no thread.
    return fail(ErrorCode::Io, fmt::format("cannot start the server: {}", error.what()));
  }
}

}  // namespace deltafin::serve
