//===- Ranks.cpp - This process as one of several ranks -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/harness/Ranks.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"

#include <dlfcn.h>
#include <vector>

using namespace burst;

static bool hasFailed(burst_error *error, std::string &message) {
  if (!error)
    return false;
  message = burst_error_message(error);
  burst_error_destroy(error);
  return true;
}

bool Ranks::isTransport(llvm::StringRef name) {
  return name == "mpi" || name == "tcp" || isOfGpus(name);
}

std::unique_ptr<Ranks> Ranks::connect(llvm::StringRef transport,
                                      std::optional<int64_t> gpu,
                                      std::string &error) {
  std::unique_ptr<Ranks> made(new Ranks);
  made->ordinal = gpu;
  made->connected = transport == "mpi" ? made->connectMpi(error)
                                       : made->connectWorld(transport, error);
  return made;
}

Ranks::~Ranks() {
  burst_transport_destroy(handle);
  burst_device_destroy(gpuDevice);
  burst_world_destroy(world);
  if (closeMpi)
    closeMpi();
}

bool Ranks::connectWorld(llvm::StringRef transport, std::string &error) {
  if (hasFailed(burst_world_create(nullptr, &world), error))
    return false;
  own = burst_world_rank(world);
  count = burst_world_num_ranks(world);
  if (isOfGpus(transport))
    return connectGpu(transport, error);
  burst_tcp_config config{};
  config.size = sizeof(config);
  config.world = world;
  return !hasFailed(burst_transport_create_tcp(&config, &handle), error);
}

bool Ranks::connectGpu(llvm::StringRef transport, std::string &error) {
  if (!ordinal)
    ordinal = burst_world_local_rank(world);
  burst_cuda_config where{};
  where.size = sizeof(where);
  where.ordinal = *ordinal;
  if (hasFailed(burst_device_create_cuda(&where, &gpuDevice), error)) {
    error = "rank " + std::to_string(own) + " takes GPU " +
            std::to_string(*ordinal) + ": " + error +
            "; --device=cuda:N is another one than that of its number on this "
            "machine; over processors go tcp and mpi";
    return false;
  }
  if (transport == "nccl") {
    burst_nccl_config config{};
    config.size = sizeof(config);
    config.device = gpuDevice;
    config.world = world;
    bool failed =
        hasFailed(burst_transport_create_nccl(&config, &handle), error);
    if (failed && llvm::StringRef(error).starts_with("NCCL: not found"))
      error += "; scripts/setup --nccl installs it";
    return !failed;
  }
  burst_ipc_config config{};
  config.size = sizeof(config);
  config.device = gpuDevice;
  config.world = world;
  return !hasFailed(burst_transport_create_ipc(&config, &handle), error);
}

/// Beside the library that this code is in, else where the loader looks.
static void *openMpiLibrary() {
  Dl_info here{};
  const char *name = "libburst_mpi.so";
  if (dladdr(reinterpret_cast<void *>(&openMpiLibrary), &here) &&
      here.dli_fname) {
    llvm::SmallString<128> path(here.dli_fname);
    llvm::sys::path::remove_filename(path);
    llvm::sys::path::append(path, name);
    // MPI's own plugins look for its symbols among the global ones.
    if (void *found = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL))
      return found;
  }
  return dlopen(name, RTLD_NOW | RTLD_GLOBAL);
}

bool Ranks::connectMpi(std::string &error) {
  void *library = openMpiLibrary();
  if (!library) {
    error = std::string("no libburst_mpi, which is built where MPI is found "
                        "(scripts/setup --mpi): ") +
            dlerror();
    return false;
  }
  auto open = reinterpret_cast<int (*)(burst_transport_table *,
                                       burst_transport_failure *)>(
      dlsym(library, "burst_mpi_open"));
  closeMpi = reinterpret_cast<void (*)()>(dlsym(library, "burst_mpi_close"));
  burst_transport_table table{};
  table.size = sizeof(table);
  burst_transport_failure failure{};
  if (!open || !closeMpi || open(&table, &failure)) {
    error = open && closeMpi ? failure.message : "libburst_mpi is another one";
    return false;
  }
  own = table.rank;
  count = table.num_ranks;
  return !hasFailed(burst_transport_create(&table, &handle), error);
}

//===----------------------------------------------------------------------===//
// What rank 0 says
//===----------------------------------------------------------------------===//

namespace {
/// What the program below sends, of which there is one at a time.
struct {
  int64_t ranks, status;
} said;
} // namespace

/// A program of ranks, of which the first one sends a number to all others.
static void tell(burst_rank *rank, const burst_table *table, void *const *) {
  burst_piece piece{
      &said.status, sizeof(said.status), {1, 1, 1, 1}, {0, 0, 0, 1}};
  burst_message messages[1024];
  bool isFirst = table->index(rank) == 0;
  for (int64_t begin = 1; begin < said.ranks; begin += 1024) {
    int64_t count = 0;
    for (int64_t peer = begin; peer < said.ranks && peer < begin + 1024; ++peer)
      if (isFirst || peer == table->index(rank))
        messages[count++] = {isFirst ? peer : 0, !isFirst, 1, &piece};
    const burst_messages list{count, BURST_POINT_TO_POINT, messages, {}};
    table->wait(rank, table->start(rank, 0, &list));
  }
}

static void noSegments(int32_t, int64_t, int64_t, burst_segment *) {}

static constexpr double longDeadline = 1e6; // rank 0 may compare for long

int Ranks::share(int status) {
  if (own != 0 && status != 0)
    burst_transport_stop(handle, "burst-run has failed on this rank");
  return world ? shareOverWorld(status) : shareOverTransport(status);
}

int Ranks::shareOverWorld(int status) {
  std::vector<int> all(static_cast<size_t>(count));
  std::string message;
  bool failed = hasFailed(burst_world_gather(world, &status, sizeof(status),
                                             all.data(), longDeadline),
                          message);
  return failed ? 1 : all.front();
}

int Ranks::shareOverTransport(int status) {
  said = {count, status};
  burst_image image{};
  image.size = sizeof(image);
  image.version = BURST_ABI_VERSION;
  image.name = "exit status";
  image.target = "";
  image.num_ranks = count;
  image.segments = noSegments;
  image.run = tell;
  image.hash = 1;
  image.version_major = BURST_VERSION_MAJOR;
  image.version_minor = BURST_VERSION_MINOR;
  std::string message;
  burst_program *program = nullptr;
  burst_device *device = nullptr;
  burst_device_config one{};
  one.size = sizeof(one);
  one.threads = 1;
  if (hasFailed(burst_program_from_image(&image, nullptr, nullptr, &program),
                message) ||
      hasFailed(burst_device_create_cpu(&one, &device), message)) {
    burst_program_release(program);
    return 1;
  }
  burst_run_config config{};
  config.size = sizeof(config);
  config.rank = own;
  config.device = device;
  config.transport = handle;
  config.deadline_seconds = longDeadline;
  bool failed =
      hasFailed(burst_run(program, &config, nullptr, 0, nullptr), message);
  burst_device_destroy(device);
  burst_program_release(program);
  return failed ? 1 : static_cast<int>(said.status);
}
