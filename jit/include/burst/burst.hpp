//===- burst/burst.hpp - the API of burst in C++20 --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// burst/burst.h with owners for its handles and results that must be looked at.
// Header only, without exceptions; everything else is said there.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_BURST_HPP
#define BURST_BURST_HPP

#include "burst/burst.h"

#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace burst::api {

/// Success, or an error. True is success.
class [[nodiscard]] Status {
public:
  Status() = default;
  explicit Status(burst_error *error) : error(error) {}

  explicit operator bool() const { return !error; }
  /// Of an error.
  burst_code code() const { return burst_error_code(error.get()); }
  std::string_view message() const { return burst_error_message(error.get()); }
  std::string_view location() const {
    return burst_error_location(error.get());
  }

private:
  struct Destroy {
    void operator()(burst_error *error) const { burst_error_destroy(error); }
  };
  std::unique_ptr<burst_error, Destroy> error;
};

/// A value, or the error that stood in its way. True is a value.
template <typename T>
class [[nodiscard]] Result {
public:
  Result(T value) : content(std::move(value)) {}
  Result(Status error) : content(std::move(error)) {}

  explicit operator bool() const { return content.index() == 0; }
  T &operator*() { return *get(); }
  T *operator->() { return get(); }
  const Status &error() const {
    assert(!*this && "a value has no error");
    return *std::get_if<1>(&content);
  }

private:
  T *get() {
    assert(*this && "look for an error first");
    return std::get_if<0>(&content);
  }
  std::variant<T, Status> content;
};

/// Whether the library that was loaded fits these headers.
inline Status checkVersion() {
  return Status(burst_check_version(BURST_VERSION_MAJOR, BURST_VERSION_MINOR));
}

/// A config of C with its size set and everything else 0.
template <typename Config>
Config make() {
  Config config{};
  config.size = sizeof(config);
  return config;
}

/// Owns a handle.
template <typename T, void (*destroy)(T *)>
class Handle {
public:
  explicit Handle(T *object = nullptr) : object(object) {}
  T *get() const { return object.get(); }
  explicit operator bool() const { return object != nullptr; }

private:
  struct Destroy {
    void operator()(T *object) const { destroy(object); }
  };
  std::unique_ptr<T, Destroy> object;
};

class Device : public Handle<burst_device, burst_device_destroy> {
public:
  using Handle::Handle;

  static Result<Device> cpu(int64_t threads = 0) {
    auto config = make<burst_device_config>();
    config.threads = threads;
    return cpu(config);
  }
  static Result<Device> cpu(const burst_device_config &config) {
    burst_device *device = nullptr;
    if (burst_error *error = burst_device_create_cpu(&config, &device))
      return Status(error);
    return Device(device);
  }
  int64_t threads() const { return burst_device_threads(get()); }
  /// Gives back to the system what is kept for later runs.
  void trim() const { burst_device_trim(get()); }
};

class Stream : public Handle<burst_stream, burst_stream_destroy> {
public:
  using Handle::Handle;

  static Result<Stream> create(const Device &device) {
    burst_stream *stream = nullptr;
    if (burst_error *error = burst_stream_create(device.get(), &stream))
      return Status(error);
    return Stream(stream);
  }
  Status synchronize() const { return Status(burst_stream_synchronize(get())); }
};

class Transport : public Handle<burst_transport, burst_transport_destroy> {
public:
  using Handle::Handle;

  /// One for each rank, for ranks that are threads of this process.
  static Result<std::vector<Transport>> local(int64_t ranks) {
    auto config = make<burst_local_config>();
    config.num_ranks = ranks;
    return local(config);
  }
  static Result<std::vector<Transport>>
  local(const burst_local_config &config) {
    std::vector<burst_transport *> handles(
        config.num_ranks > 0 ? static_cast<size_t>(config.num_ranks) : 0);
    if (burst_error *error =
            burst_transport_create_local(&config, handles.data()))
      return Status(error);
    std::vector<Transport> transports;
    for (burst_transport *handle : handles)
      transports.emplace_back(handle);
    return transports;
  }
  void stop(const char *reason) const { burst_transport_stop(get(), reason); }
};

class Trace : public Handle<burst_trace, burst_trace_destroy> {
public:
  using Handle::Handle;

  static Result<Trace> create() {
    burst_trace *trace = nullptr;
    if (burst_error *error = burst_trace_create(&trace))
      return Status(error);
    return Trace(trace);
  }
  Status write(const char *path) const {
    return Status(burst_trace_write(get(), path));
  }
};

class Cache : public Handle<burst_cache, burst_cache_destroy> {
public:
  using Handle::Handle;

  static Result<Cache> create() {
    burst_cache *cache = nullptr;
    if (burst_error *error = burst_cache_create(&cache))
      return Status(error);
    return Cache(cache);
  }
  int64_t size() const { return burst_cache_size(get()); }
  int64_t hits() const { return burst_cache_hits(get()); }
};

/// A dense tensor, row-major, on the caller's memory.
inline burst_tensor dense(void *data, int32_t type,
                          std::span<const int64_t> sizes) {
  assert(sizes.size() <= 8 && "tensors have up to 8 dimensions");
  burst_tensor tensor{};
  tensor.data = data;
  tensor.type = type;
  tensor.rank = static_cast<int32_t>(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    tensor.sizes[d] = sizes[d];
    tensor.strides[d] = stride;
    stride *= sizes[d];
  }
  return tensor;
}
inline burst_tensor dense(void *data, int32_t type,
                          std::initializer_list<int64_t> sizes) {
  return dense(data, type, std::span(sizes.begin(), sizes.size()));
}

/// A program; copies share it.
class Program {
public:
  /// Takes over a reference.
  explicit Program(burst_program *program = nullptr) : program(program) {}
  Program(const Program &other) : program(other.program) {
    if (program)
      burst_program_retain(program);
  }
  Program(Program &&other) noexcept
      : program(std::exchange(other.program, nullptr)) {}
  Program &operator=(Program other) noexcept {
    std::swap(program, other.program);
    return *this;
  }
  ~Program() { burst_program_release(program); }

  static Result<Program> load(const char *path) {
    burst_program *made = nullptr;
    return own(burst_program_load(path, &made), made);
  }
  /// With libburst only.
  static Result<Program>
  compile(std::string_view text,
          const burst_compile_config &config = make<burst_compile_config>()) {
    burst_program *made = nullptr;
    return own(burst_compile_text(text.data(), text.size(), &config, &made),
               made);
  }
  static Result<Program>
  compile(const burst_attention &attention,
          const burst_compile_config &config = make<burst_compile_config>()) {
    burst_program *made = nullptr;
    return own(burst_compile_attention(&attention, &config, &made), made);
  }

  burst_program *get() const { return program; }
  std::string_view name() const { return burst_program_name(program); }
  std::string_view target() const { return burst_program_target(program); }
  int64_t numRanks() const { return burst_program_num_ranks(program); }
  int64_t numArguments() const { return burst_program_num_arguments(program); }
  int64_t numParameters() const {
    return burst_program_num_parameters(program);
  }
  const burst_parameter &parameter(int64_t index) const {
    return *burst_program_parameter(program, index);
  }

  Result<int64_t> localSize(int64_t parameter, int64_t rank,
                            int64_t extent) const {
    int64_t size = 0;
    if (burst_error *error =
            burst_program_local_size(program, parameter, rank, extent, &size))
      return Status(error);
    return size;
  }
  /// The global positions that a rank holds, in storage order.
  Result<std::vector<int64_t>> positions(int64_t parameter, int64_t rank,
                                         int64_t extent) const {
    Result<int64_t> size = localSize(parameter, rank, extent);
    std::vector<int64_t> positions(size ? static_cast<size_t>(*size) : 0);
    burst_error *error = burst_program_positions(
        program, parameter, rank, extent,
        static_cast<int64_t>(positions.size()), positions.data());
    if (error)
      return Status(error);
    return positions;
  }

  Status shard(int64_t parameter, int64_t rank, const burst_tensor &global,
               const burst_tensor &local) const {
    return Status(burst_shard(program, parameter, rank, &global, &local));
  }
  Status gather(int64_t parameter, int64_t rank, const burst_tensor &local,
                const burst_tensor &global) const {
    return Status(burst_gather(program, parameter, rank, &local, &global));
  }

  /// For what the schedule was proved when the program was compiled. With
  /// libburst only, as the next one.
  burst_proof proof() const { return burst_program_proof(program); }
  Status prove(std::span<const burst_tensor> globals) const {
    return Status(burst_program_prove(program, globals.data(),
                                      static_cast<int64_t>(globals.size())));
  }
  Status run(const burst_run_config &config,
             std::span<const burst_tensor> values,
             burst_counters *counters = nullptr) const {
    return Status(burst_run(program, &config, values.data(),
                            static_cast<int64_t>(values.size()), counters));
  }
  Status runAll(const burst_run_all_config &config,
                std::span<const burst_tensor> globals,
                burst_counters *counters = nullptr) const {
    return Status(burst_run_all(program, &config, globals.data(),
                                static_cast<int64_t>(globals.size()),
                                counters));
  }

private:
  /// By reference: arguments are evaluated in any order.
  static Result<Program> own(burst_error *error, burst_program *const &made) {
    if (error)
      return Status(error);
    return Program(made);
  }

  burst_program *program;
};

/// What burst_explain_text tells of the schedules of a module. With libburst
/// only.
inline Result<std::string>
explain(std::string_view text,
        const burst_explain_config &config = make<burst_explain_config>()) {
  char *told = nullptr;
  if (burst_error *error =
          burst_explain_text(text.data(), text.size(), &config, &told))
    return Status(error);
  std::unique_ptr<char, decltype(&burst_text_destroy)> owned(
      told, burst_text_destroy);
  return std::string(told);
}

} // namespace burst::api

#endif // BURST_BURST_HPP
