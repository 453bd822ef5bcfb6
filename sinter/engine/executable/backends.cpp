// The backends by name.
#include <algorithm>
#include <map>
#include <mutex>

#include "sinter/base/error.h"
#include "sinter/engine/backend.h"
#include "sinter/engine/executable/checks.h"
#include "sinter/engine/executable/function.h"
#include "sinter/engine/executable/planned.h"
#include "sinter/engine/executable/specialize.h"

namespace sinter {

namespace {

using Maker = std::function<std::shared_ptr<Executable>(Program program)>;

// Runs what a user's backend does; its errors say whose they are.
template <class F>
auto as_backend(const std::string& name, F&& f) {
  try {
    return f();
  } catch (const OutOfMemoryError& error) {
    throw OutOfMemoryError(format("backend {}: {}", name, error.what()));
  } catch (const Error& error) {
    throw Error(format("backend {}: {}", name, error.what()));
  }
}

std::shared_ptr<Executable> make_user(const std::string& name, const Backend& backend, Program given) {
  auto program = std::make_shared<const Program>(std::move(given));
  GraphFunction function = as_backend(name, [&] { return backend(program->graph); });
  check(bool(function), "backend {}: made no function of the graph", name);
  auto run = [name, function](std::span<const TensorArg> inputs, std::span<const int64_t>) {
    return as_backend(name, [&] { return function(inputs); });
  };
  return make_function(program, run, format("backend {}:\n", name));
}

std::shared_ptr<Executable> make_sinter(Program program) {
  return is_plannable(program.graph, program.symbols) ? make_planned(std::move(program))
                                                      : make_eager(std::move(program));
}

class Backends {
 public:
  void add(const std::string& name, Maker maker) {
    std::lock_guard lock(mutex_);
    check(!makers_.contains(name), "a backend called '{}' exists already; known are {}", name, names());
    makers_[name] = std::move(maker);
  }
  Maker find(const std::string& name) {
    std::lock_guard lock(mutex_);
    auto it = makers_.find(name);
    check(it != makers_.end(), "no backend is called '{}'; known are {}", name, names());
    return it->second;
  }
  std::vector<std::string> list() {
    std::lock_guard lock(mutex_);
    std::vector<std::string> out;
    for (auto& [name, maker] : makers_) out.push_back(name);
    return out;
  }

 private:
  std::string names() const {
    std::string out;
    for (auto& [name, maker] : makers_) out += (out.empty() ? "" : ", ") + name;
    return out;
  }

  std::mutex mutex_;
  std::map<std::string, Maker> makers_{
      {"sinter", make_sinter}, {"eager", make_eager}, {"interpreter", make_interpreted}};
};

Backends& backends() {
  static Backends all;
  return all;
}

}  // namespace

std::shared_ptr<Executable> compile_program(Program program, const std::string& backend) {
  Maker make = backends().find(backend);
  check_program(program);
  return make(std::move(program));
}

void register_backend(const std::string& name, Backend backend) {
  check(!name.empty() && backend, "register_backend: a backend needs a name and a function");
  backends().add(name, [name, backend = std::move(backend)](Program program) {
    return make_user(name, backend, std::move(program));
  });
}

std::vector<std::string> list_backends() { return backends().list(); }

}  // namespace sinter
