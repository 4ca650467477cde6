//===- Gpus.cpp - Emulated GPUs and their streams -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/standins/Gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace burst::standins {

thread_local CUcontext currentContext = nullptr;

/// Operations that this thread may still run; negative: any number.
static thread_local int budget = -1;

Gpus &Gpus::get() {
  // It outlives the threads that use it.
  static Gpus *const gpus = new Gpus;
  return *gpus;
}

static uint64_t number(const char *variable, uint64_t otherwise) {
  const char *value = getenv(variable);
  return value && *value ? strtoull(value, nullptr, 0) : otherwise;
}

static int integer(const char *text) { return int(strtol(text, nullptr, 10)); }

void Gpus::reset() {
  options.count = int(number("BURST_EMULATED_GPUS", 1));
  options.capability = int(number("BURST_EMULATED_CAPABILITY", 80));
  options.driverVersion = int(number("BURST_EMULATED_DRIVER_VERSION", 13000));
  options.memory = number("BURST_EMULATED_MEMORY", size_t(4) << 30);
  options.seed = number("BURST_EMULATED_SEED", 0);
  options.races = number("BURST_EMULATED_RACES", 1) != 0;
  options.processes = number("BURST_EMULATED_PROCESSES", 0) != 0;
  const char *log = getenv("BURST_EMULATED_LOG");
  options.log = log ? log : "";
  random.seed(options.seed);
  isInitialised = false;
  // Operations hold streams and recordings, which hold streams.
  for (const StreamRef &stream : unowned)
    stream->operations.clear();
  for (auto &[handle, stream] : streams)
    stream->operations.clear();
  for (CUctx_st &context : contexts)
    context.nullStream->operations.clear();
  unowned.clear();
  streams.clear();
  events.clear();
  modules.clear();
  graphs.clear();
  pools.clear();
  executables.clear();
  for (auto &[base, allocation] : allocations) {
    if (allocation.freed)
      continue;
    unshare(allocation);
    memory.free(base);
  }
  allocations.clear();
  registered.clear();
  deviceAccesses = hostAccesses = Accesses();
  host = Clock();
  reports.clear();
  contexts.clear();
  agents = 1;
  nextBuffer = 0;
  communicators = 0;
  words.clear();
  for (int i = 0; i < options.count; ++i) {
    CUctx_st &context = contexts.emplace_back();
    context.ordinal = i;
    context.nullStream = std::make_shared<Stream>();
    context.nullStream->context = &context;
    context.nullStream->agent = agents++;
  }
  plants.clear();
  const char *planted = getenv("BURST_EMULATED_FAIL");
  std::string rest = planted ? planted : "";
  while (!rest.empty()) {
    std::string one = rest.substr(0, rest.find(','));
    rest.erase(0, one.size() + 1);
    size_t nth = one.find(':'), result = one.rfind(':');
    if (nth == result) {
      fprintf(stderr,
              "BURST_EMULATED_FAIL: %s, wanted function[@gpu]:nth:result\n",
              one.c_str());
      abort();
    }
    plant(one.substr(0, nth), integer(one.c_str() + nth + 1),
          integer(one.c_str() + result + 1));
  }
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

StreamRef Gpus::createStream(CUcontext context) {
  auto stream = std::make_shared<Stream>();
  stream->context = context;
  stream->agent = agents++;
  return stream;
}

StreamRef Gpus::find(CUstream stream) {
  if (!stream)
    return currentContext ? currentContext->nullStream : nullptr;
  auto found = streams.find(stream);
  return found == streams.end() ? nullptr : found->second;
}

void Gpus::submit(const StreamRef &stream, Command command) {
  if (!stream->capture) {
    command(stream, nullptr);
    return;
  }
  Capture &capture = *stream->capture;
  capture.clocks[stream->captured].tick(stream->captured);
  capture.commands.emplace_back(stream->captured, std::move(command));
}

OperationRef Gpus::push(const StreamRef &stream, Operation operation) {
  operation.stream = stream.get();
  operation.number = ++stream->asked;
  operation.clock = host;
  // Streams that no one has a handle of live until they have run.
  if (!streams.contains(stream.get()) &&
      stream != stream->context->nullStream &&
      std::find(unowned.begin(), unowned.end(), stream) == unowned.end())
    unowned.push_back(stream);
  stream->operations.push_back(
      std::make_shared<Operation>(std::move(operation)));
  changed.notify_all();
  return stream->operations.back();
}

RecordingRef Gpus::record(const StreamRef &stream) {
  auto recording = std::make_shared<Recording>();
  recording->stream = stream;
  Operation operation{.what = "event"};
  operation.isRecord = true;
  operation.run = [recording](Operation &now) {
    recording->isDone = true;
    recording->clock = now.clock;
    recording->seconds =
        std::chrono::duration<double>(
            std::chrono::steady_clock::now().time_since_epoch())
            .count();
  };
  recording->number = push(stream, std::move(operation))->number;
  return recording;
}

void Gpus::wait(const StreamRef &stream, const RecordingRef &recording) {
  Operation operation{.what = "wait for an event"};
  operation.await = [this, recording](Operation &now) {
    if (!recording->isDone && !advance(recording->stream, recording->number))
      return false;
    now.clock.join(recording->clock);
    return true;
  };
  push(stream, std::move(operation));
}

void Gpus::launch(const Capture &graph, const StreamRef &stream) {
  Replay replay;
  replay.streams.push_back(stream);
  while (replay.streams.size() < graph.clocks.size())
    replay.streams.push_back(createStream(stream->context));
  replay.recordings.resize(graph.recordings.size());
  for (const auto &[number, command] : graph.commands)
    command(replay.streams[number], &replay);
}

void Gpus::begin(Operation &operation) {
  Stream &stream = *operation.stream;
  operation.isActive = true;
  stream.clock.join(operation.clock);
  operation.begun = stream.clock;
  uint32_t tick = stream.clock.tick(stream.agent);
  operation.clock = stream.clock;
  operation.step = std::make_shared<Step>(Step{
      stream.agent, tick,
      fmt::format("{} (operation {} of stream {} of GPU {})", operation.what,
                  operation.number, stream.agent, stream.context->ordinal)});
}

/// Runs the first operation of a stream.
bool Gpus::step(const StreamRef &stream) {
  OperationRef operation = stream->operations.front();
  if (!operation->isActive)
    begin(*operation);
  if (budget == 0)
    return false;
  bool lost = stream->context->sticky != CUDA_SUCCESS && !operation->isRecord;
  if (!lost && operation->await && !operation->await(*operation))
    return false;
  if (budget > 0)
    --budget;
  if (!lost && operation->run)
    operation->run(*operation);
  stream->clock.join(operation->clock);
  stream->operations.pop_front();
  ++stream->done;
  changed.notify_all();
  return true;
}

bool Gpus::advance(const StreamRef &stream, uint64_t number) {
  if (stream->done >= number)
    return true;
  if (stream->isRunning)
    return false;
  stream->isRunning = true;
  while (stream->done < number && step(stream)) {
  }
  stream->isRunning = false;
  if (stream->operations.empty())
    std::erase(unowned, stream);
  return stream->done >= number;
}

bool Gpus::activate(Operation &operation) {
  if (operation.isActive)
    return true;
  Stream &stream = *operation.stream;
  StreamRef owner = stream.operations.empty() ? nullptr : find(&stream);
  for (const StreamRef &other : unowned)
    if (other.get() == &stream)
      owner = other;
  if (stream.context->nullStream.get() == &stream)
    owner = stream.context->nullStream;
  if (!owner || !advance(owner, operation.number - 1) || stream.isRunning)
    return false;
  if (!operation.isActive)
    begin(operation);
  return true;
}

CUresult Gpus::synchronise(const StreamRef &stream, uint64_t number,
                           std::unique_lock<std::mutex> &lock) {
  // Other processes, and the host, let streams go on without a word.
  while (!advance(stream, number))
    if (registered.empty() && !options.processes)
      changed.wait(lock);
    else
      changed.wait_for(lock, std::chrono::milliseconds(1));
  host.join(stream->clock);
  return stream->context->sticky;
}

bool Gpus::poll(const StreamRef &stream, uint64_t number) {
  budget = 1;
  bool isDone = stream->done >= number;
  if (!isDone) {
    advance(stream, number);
    // It is seen by the next call, as if it had been done in between.
  } else {
    host.join(stream->clock);
  }
  budget = -1;
  return isDone;
}

std::vector<StreamRef> Gpus::streamsWithWork() const {
  std::vector<StreamRef> found = unowned;
  for (const auto &[handle, stream] : streams)
    found.push_back(stream);
  for (const CUctx_st &context : contexts)
    found.push_back(context.nullStream);
  std::erase_if(found, [](const StreamRef &stream) {
    return stream->operations.empty();
  });
  return found;
}

void Gpus::advanceAtRandom() {
  if (!options.seed || random() % 4)
    return;
  std::vector<StreamRef> candidates = streamsWithWork();
  if (candidates.empty())
    return;
  const StreamRef &stream = candidates[random() % candidates.size()];
  budget = int(1 + random() % 3);
  advance(stream, stream->asked);
  budget = -1;
}

void Gpus::advanceForOthers() {
  if (!options.processes)
    return;
  for (const StreamRef &stream : streamsWithWork())
    advance(stream, stream->asked);
}

bool Gpus::advanceToValue(uint64_t word) {
  for (const StreamRef &stream : streamsWithWork())
    for (const OperationRef &operation : stream->operations)
      if (operation->value == word) {
        if (advance(stream, operation->number))
          return true;
        break;
      }
  return false;
}

void Gpus::drain(CUcontext context) {
  for (const StreamRef &stream : streamsWithWork())
    if (stream->context == context)
      advance(stream, stream->asked);
}

void Gpus::disown(const StreamRef &stream) {
  if (!stream->operations.empty())
    unowned.push_back(stream);
  streams.erase(stream.get());
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Allocation *Gpus::allocate(CUcontext context, size_t bytes) {
  if (bytes > options.memory - context->allocated)
    return nullptr;
  context->allocated += bytes;
  std::string name = fmt::format("buffer {} ({} bytes of GPU {})", ++nextBuffer,
                                 bytes, context->ordinal);
  uint64_t base = memory.allocate(bytes, name);
  Allocation &allocation = allocations[base];
  allocation.base = base;
  allocation.bytes = bytes;
  allocation.name = std::move(name);
  allocation.device = context->ordinal;
  return &allocation;
}

Allocation *Gpus::findAllocation(uint64_t address) {
  auto after = allocations.upper_bound(address);
  if (after == allocations.begin())
    return nullptr;
  Allocation &allocation = std::prev(after)->second;
  return address - allocation.base < std::max<size_t>(allocation.bytes, 1)
             ? &allocation
             : nullptr;
}

void Gpus::release(Allocation &allocation, const StepRef &step) {
  allocation.freed = step;
  contexts[size_t(allocation.device)].allocated -= allocation.bytes;
  unshare(allocation);
  if (kernels)
    graveyard.push_back(allocation.base);
  else
    memory.free(allocation.base);
}

emulator::Outcome Gpus::run(const std::function<emulator::Outcome()> &kernel) {
  ++kernels;
  emulator::Outcome outcome;
  {
    Unlocked unlocked(*this);
    outcome = kernel();
  }
  if (--kernels == 0) {
    for (uint64_t base : graveyard)
      memory.free(base);
    graveyard.clear();
  }
  return outcome;
}

bool Gpus::check(const Operation &operation, Accesses &accesses, Range range,
                 bool writes, const std::string &name, uint64_t base) {
  std::optional<Conflict> conflict =
      accesses.add(range, writes, operation.step, operation.clock);
  if (!conflict || !options.races)
    return true;
  report(operation.stream->context, CUDA_ERROR_LAUNCH_FAILED,
         fmt::format("race: {} {} bytes {} to {} of {}\n  and is not ordered "
                     "after {}, which {} them",
                     operation.step->what, writes ? "writes" : "reads",
                     conflict->where.begin - base, conflict->where.end - base,
                     name, conflict->earlier->what,
                     conflict->earlierWrites ? "wrote" : "read"));
  return false;
}

bool Gpus::touchOrdered(const Operation &operation,
                        const Allocation &allocation, Range range,
                        bool writes) {
  return check(operation, deviceAccesses, range, writes, allocation.name,
               allocation.base);
}

bool Gpus::touch(const Operation &operation, uint64_t address, size_t bytes,
                 bool writes) {
  if (bytes == 0)
    return true;
  CUcontext context = operation.stream->context;
  Allocation *allocation = findAllocation(address);
  if (!allocation) {
    report(context, CUDA_ERROR_ILLEGAL_ADDRESS,
           fmt::format("out of bounds: {} {} {} bytes at address {:#x}, which "
                       "lies in no buffer",
                       operation.step->what, writes ? "writes" : "reads", bytes,
                       address));
    return false;
  }
  uint64_t at = address - allocation->base;
  if (allocation->freed) {
    report(context, CUDA_ERROR_ILLEGAL_ADDRESS,
           fmt::format("use after free: {} {} bytes {} to {} of {}\n  which "
                       "was freed by {}",
                       operation.step->what, writes ? "writes" : "reads", at,
                       at + bytes, allocation->name, allocation->freed->what));
    return false;
  }
  if (bytes > allocation->bytes - at) {
    report(context, CUDA_ERROR_ILLEGAL_ADDRESS,
           fmt::format("out of bounds: {} {} bytes {} to {} of {}",
                       operation.step->what, writes ? "writes" : "reads", at,
                       at + bytes, allocation->name));
    return false;
  }
  if (allocation->shared && operation.stream->isReleased)
    return true;
  return touchOrdered(operation, *allocation, {address, address + bytes},
                      writes);
}

bool Gpus::touchHost(const Operation &operation, const void *memory,
                     size_t bytes, bool writes) {
  auto address = reinterpret_cast<uint64_t>(memory);
  return check(operation, hostAccesses, {address, address + bytes}, writes,
               fmt::format("the host's memory at {:#x}", address), address);
}

uint64_t Gpus::wordAt(uint64_t address) {
  if (address % sizeof(uint32_t))
    return 0;
  auto after = registered.upper_bound(address);
  if (after != registered.begin()) {
    auto [base, registration] = *std::prev(after);
    if (address - base < registration.bytes)
      return registration.file + (address - base);
  }
  const Allocation *found = findAllocation(address);
  return found && !found->freed ? address : 0;
}

uint32_t Gpus::readWord(uint64_t address) {
  uint32_t value;
  if (findAllocation(address))
    memory.read(address, &value, sizeof(value));
  else
    __atomic_load(reinterpret_cast<uint32_t *>(address), &value,
                  __ATOMIC_SEQ_CST);
  return value;
}

void Gpus::writeWord(uint64_t address, uint32_t value) {
  if (findAllocation(address))
    memory.write(address, &value, sizeof(value));
  else
    __atomic_store(reinterpret_cast<uint32_t *>(address), &value,
                   __ATOMIC_SEQ_CST);
}

void Gpus::unshare(Allocation &allocation) {
  if (allocation.shared)
    munmap(allocation.shared, allocation.bytes);
  if (allocation.fd >= 0)
    close(allocation.fd);
  allocation.shared = nullptr;
  allocation.fd = -1;
}

void Gpus::copy(uint64_t to, uint64_t from, size_t bytes) {
  emulator::Memory::Buffer *target = memory.find(to);
  const emulator::Memory::Buffer *source = memory.find(from);
  size_t t = to - target->base, s = from - source->base;
  const Allocation *known = findAllocation(from);
  if (known->shared &&
      memcmp(source->data.data() + s, known->shared + s, bytes) != 0)
    memory.write(from, known->shared + s, bytes);
  memmove(target->data.data() + t, source->data.data() + s, bytes);
  known = findAllocation(to);
  if (known->shared)
    memcpy(known->shared + t, target->data.data() + t, bytes);
  if (t % 4 == 0 && s % 4 == 0 && bytes % 4 == 0) {
    memmove(target->written.data() + t / 4, source->written.data() + s / 4,
            bytes / 4);
    return;
  }
  for (size_t i = 0; i < bytes; ++i, ++s, ++t) {
    unsigned isWritten = source->written[s / 4] >> s % 4 & 1U;
    uint8_t &mask = target->written[t / 4];
    mask = uint8_t((mask & ~(1U << t % 4)) | isWritten << t % 4);
  }
}

Operation Gpus::hostOperation(CUcontext context, std::string what) {
  Operation operation{.what = std::move(what)};
  operation.stream = context->nullStream.get();
  operation.isActive = true;
  operation.step = std::make_shared<Step>(
      Step{0, host.tick(0), operation.what + " (by the host)"});
  operation.clock = host;
  return operation;
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

void Gpus::report(CUcontext context, CUresult result, const std::string &text) {
  if (context->sticky == CUDA_SUCCESS)
    context->sticky = result;
  reports.push_back(text);
  fprintf(stderr, "emulated GPU %d: %s\n", context->ordinal, text.c_str());
  if (FILE *log =
          options.log.empty() ? nullptr : fopen(options.log.c_str(), "a")) {
    fprintf(log, "emulated GPU %d: %s\n", context->ordinal, text.c_str());
    fclose(log);
  }
  changed.notify_all();
}

void Gpus::plant(const std::string &function, int nth, int result) {
  size_t at = function.find('@');
  plants.push_back(
      {function.substr(0, at),
       at == std::string::npos ? -1 : integer(function.c_str() + at + 1), nth,
       result});
}

int Gpus::planted(const std::string &function, CUcontext context) {
  for (Plant &plant : plants)
    if (plant.function == function &&
        (plant.device < 0 || (context && context->ordinal == plant.device)) &&
        --plant.left == 0)
      return plant.result;
  return 0;
}

Call::Call(const char *function, Needs needs)
    : gpus(Gpus::get()), lock(gpus.mutex) {
  int planted = gpus.planted(function, currentContext);
  isNever = planted == BURST_EMULATED_NEVER;
  if (planted > 0)
    result = CUresult(planted);
  else if (needs >= Initialised && !gpus.isInitialised)
    result = CUDA_ERROR_NOT_INITIALIZED;
  else if (needs >= Context && !currentContext)
    result = CUDA_ERROR_INVALID_CONTEXT;
  if (result != CUDA_SUCCESS || needs < Context)
    return;
  gpus.advanceAtRandom();
  result = currentContext->sticky;
}

CUresult Call::put(CUstream stream, Operation operation) {
  StreamRef found = gpus.find(stream);
  if (!found)
    return CUDA_ERROR_INVALID_HANDLE;
  if (isNever)
    operation.await = [](Operation &) { return false; };
  gpus.submit(found, [operation = std::move(operation),
                      &gpus = gpus](const StreamRef &onto, Replay *) {
    gpus.push(onto, operation);
  });
  return CUDA_SUCCESS;
}

} // namespace burst::standins

using namespace burst::standins;

void burst_emulated_reset(void) {
  Gpus &gpus = Gpus::get();
  std::scoped_lock lock(gpus.mutex);
  gpus.reset();
}

void burst_emulated_fail(const char *function, int nth, int result) {
  Gpus &gpus = Gpus::get();
  std::scoped_lock lock(gpus.mutex);
  gpus.plant(function, nth, result);
}

const char *burst_emulated_take_report(void) {
  static std::string taken;
  Gpus &gpus = Gpus::get();
  std::scoped_lock lock(gpus.mutex);
  if (gpus.reports.empty())
    return nullptr;
  taken = std::move(gpus.reports.front());
  gpus.reports.pop_front();
  return taken.c_str();
}

int burst_emulated_alive(void) {
  Gpus &gpus = Gpus::get();
  std::scoped_lock lock(gpus.mutex);
  size_t count = gpus.streams.size() + gpus.events.size() +
                 gpus.modules.size() + gpus.pools.size() + gpus.graphs.size() +
                 gpus.executables.size() + gpus.hostMemory.size() +
                 gpus.registered.size();
  count += size_t(gpus.communicators);
  for (const CUctx_st &context : gpus.contexts)
    count += size_t(context.held);
  for (const auto &[base, allocation] : gpus.allocations)
    count += !allocation.freed;
  return int(count);
}

/// A report that no one has taken must not be overlooked.
__attribute__((destructor)) static void end() {
  if (!Gpus::get().reports.empty())
    _exit(86);
}
