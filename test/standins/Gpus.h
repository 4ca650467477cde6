//===- Gpus.h - Emulated GPUs and their streams -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What lies behind the functions of the stand-ins. A call puts an operation on
// a stream and returns; it is run when something waits for it, by the thread
// that waits, or at random (BURST_EMULATED_SEED). A thread that waits for what
// no thread has asked for yet sleeps until the next call of any.
//
// One mutex guards everything. It is released while a kernel or a function of
// the host runs.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_TEST_STANDINS_GPUS_H
#define BURST_TEST_STANDINS_GPUS_H

#include "runtime/src/cuda/Driver.h"
#include "test/emulator/Emulator.h"
#include "test/standins/Control.h"
#include "test/standins/Order.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace burst::standins {

using Stream = CUstream_st;
using StreamRef = std::shared_ptr<Stream>;

// Results that burst does not tell apart.
inline constexpr auto invalidPtx = CUresult(218);
inline constexpr auto peerAccessUnsupported = CUresult(217);
inline constexpr auto alreadyRegistered = CUresult(712);
inline constexpr auto notRegistered = CUresult(713);
inline constexpr auto misalignedAddress = CUresult(716);
inline constexpr auto notSupported = CUresult(801);
inline constexpr auto captureUnsupported = CUresult(900);
inline constexpr auto captureInvalidated = CUresult(901);
inline constexpr auto captureMerge = CUresult(902);
inline constexpr auto captureUnmatched = CUresult(903);
inline constexpr auto captureUnjoined = CUresult(904);
inline constexpr auto captureIsolation = CUresult(905);
inline constexpr auto capturedEvent = CUresult(907);

/// What a stream is to do.
struct Operation {
  std::string what; // "copy of 64 bytes to the host"
  /// Makes happen what it waits for; false: that cannot happen yet.
  std::function<bool(Operation &)> await = {};
  std::function<void(Operation &)> run = {};
  bool isRecord = false; // done even where the GPU has failed
  uint64_t value = 0;    // the word that cuStreamWriteValue32 writes, or 0

  // When it is put on a stream:
  Stream *stream = nullptr;
  uint64_t number = 0; // of the stream's, from 1
  Clock clock = {};    // what is ordered before it
  // When it is the first of its stream:
  bool isActive = false;
  StepRef step = nullptr;
  Clock begun = {}; // the clock before it
};
using OperationRef = std::shared_ptr<Operation>;

/// What cuEventRecord asks for.
struct Recording {
  StreamRef stream;
  uint64_t number = 0;
  bool isDone = false;
  Clock clock;
  double seconds = 0;
};
using RecordingRef = std::shared_ptr<Recording>;

struct Allocation {
  uint64_t base = 0;
  size_t bytes = 0;
  std::string name;
  int device = 0;
  bool isOrdered = false; // came from a pool, in the order of a stream
  StepRef freed;          // by what, or null
  // Devices that may access it beside its own, or null.
  std::shared_ptr<CUmemPoolHandle_st> pool;
  // What other processes see of it, once it was exported or opened: copies keep
  // both alike.
  char *shared = nullptr;
  int fd = -1; // of that, where it was exported
};

/// What the host has registered: words of it are found by all who map the same
/// file.
struct Registration {
  size_t bytes = 0;
  uint64_t file = 0; // a number of it, and of its part
};

/// What was written to a word by streams, and what is ordered before that.
struct Word {
  uint32_t initial = 0;                          // before them
  std::deque<std::pair<uint32_t, Clock>> writes; // the latest
};

/// A launch of a graph: where its streams and recordings are.
struct Replay {
  std::vector<StreamRef> streams;
  std::vector<RecordingRef> recordings;
};
/// Puts operations on a stream, maybe as part of a graph.
using Command = std::function<void(const StreamRef &stream, Replay *replay)>;

/// What is captured, or a graph. Streams of it are numbered as they join.
struct Capture {
  std::vector<std::pair<uint32_t, Command>> commands; // and their stream
  std::vector<Clock> clocks;                          // of each stream
  std::vector<Clock> recordings;
  std::vector<StreamRef> streams; // until it is ended
  bool isEnded = false, isInvalid = false;
};
using CaptureRef = std::shared_ptr<Capture>;

} // namespace burst::standins

struct CUctx_st {
  int ordinal = 0, held = 0;
  CUresult sticky = CUDA_SUCCESS;
  size_t allocated = 0;
  std::set<int> peers; // whose memory it may access
  burst::standins::StreamRef nullStream;
};

struct CUstream_st {
  CUcontext context = nullptr;
  uint32_t agent = 0; // and its name
  std::deque<burst::standins::OperationRef> operations;
  uint64_t asked = 0, done = 0; // numbers of operations
  bool isRunning = false;
  // Someone else than a stream of this process has let it past a wait: what it
  // does to memory of several processes is no more in any order.
  bool isReleased = false;
  burst::standins::Clock clock;
  burst::standins::CaptureRef capture;
  uint32_t captured = 0; // its number there
};

struct CUevent_st {
  CUcontext context = nullptr;
  bool isTimed = false;
  burst::standins::RecordingRef recording; // the last
  burst::standins::CaptureRef capture;     // if the last is in one
  size_t captured = 0;                     // its number there
};

struct CUmemPoolHandle_st {
  CUcontext context = nullptr;
  std::set<int> peers; // devices that may access it
};

struct CUgraph_st {
  burst::standins::CaptureRef capture;
};
struct CUgraphExec_st {
  burst::standins::CaptureRef capture;
};

namespace burst::standins {

class Gpus {
public:
  static Gpus &get();

  std::mutex mutex;
  std::condition_variable changed;

  // All of what follows under the mutex.

  /// Drops everything and reads the environment.
  void reset();

  struct {
    int count = 1, capability = 80, driverVersion = 13000;
    size_t memory = 0;
    uint64_t seed = 0;
    bool races = true, processes = false;
    std::string log;
  } options;
  std::mt19937_64 random;
  bool isInitialised = false;
  std::deque<CUctx_st> contexts;
  std::map<CUstream, StreamRef> streams; // that the caller has
  std::map<CUevent, std::unique_ptr<CUevent_st>> events;
  std::map<CUmodule, std::shared_ptr<CUmod_st>> modules;
  std::map<CUmemoryPool, std::shared_ptr<CUmemPoolHandle_st>> pools;
  std::map<CUgraph, std::unique_ptr<CUgraph_st>> graphs;
  std::map<CUgraphExec, std::unique_ptr<CUgraphExec_st>> executables;
  emulator::Memory memory;
  std::map<uint64_t, Allocation> allocations; // freed ones too, by base
  std::map<void *, size_t> hostMemory;        // page-locked
  std::map<uint64_t, Registration> registered;
  int communicators = 0;
  Accesses deviceAccesses, hostAccesses;
  Clock host;
  std::map<uint64_t, Word> words; // that streams wrote, by their names

  //===--------------------------------------------------------------------===//
  // Streams
  //===--------------------------------------------------------------------===//

  StreamRef createStream(CUcontext context);
  /// Null where the handle is of no stream; that of the context for null.
  StreamRef find(CUstream stream);
  /// Does the command now, or adds it to what the stream captures.
  void submit(const StreamRef &stream, Command command);
  /// Puts an operation on a stream.
  OperationRef push(const StreamRef &stream, Operation operation);
  RecordingRef record(const StreamRef &stream);
  void wait(const StreamRef &stream, const RecordingRef &recording);
  void launch(const Capture &graph, const StreamRef &stream);

  /// Runs a stream until that many of its operations are done; false: one of
  /// them waits for what cannot happen yet, or is being run.
  bool advance(const StreamRef &stream, uint64_t number);
  /// Makes that operation the first of its stream, and waits for nothing else.
  bool activate(Operation &operation);
  /// The same with sleep. The host knows of it then.
  CUresult synchronise(const StreamRef &stream, uint64_t number,
                       std::unique_lock<std::mutex> &lock);
  /// Runs at most one operation towards it; whether it is done.
  bool poll(const StreamRef &stream, uint64_t number);
  void advanceAtRandom();
  /// Runs what writes a word, if that is asked for and can run.
  bool advanceToValue(uint64_t word);
  /// Runs what else can run, for other processes that wait for it.
  void advanceForOthers();
  /// Runs what can run of a GPU.
  void drain(CUcontext context);
  /// The caller gives up a handle; what was asked for is still done.
  void disown(const StreamRef &stream);

  //===--------------------------------------------------------------------===//
  // Memory
  //===--------------------------------------------------------------------===//

  /// Null where there is no room.
  Allocation *allocate(CUcontext context, size_t bytes);
  Allocation *findAllocation(uint64_t address);
  void release(Allocation &allocation, const StepRef &step);
  /// Other processes see it no more.
  static void unshare(Allocation &allocation);
  /// Runs a kernel without the mutex.
  emulator::Outcome run(const std::function<emulator::Outcome()> &kernel);
  /// Says that an operation touches memory; false, and a report, where it must
  /// not.
  bool touch(const Operation &operation, uint64_t address, size_t bytes,
             bool writes);
  bool touchHost(const Operation &operation, const void *memory, size_t bytes,
                 bool writes);
  /// The same of a range that was looked at: only the order is checked.
  bool touchOrdered(const Operation &operation, const Allocation &allocation,
                    Range range, bool writes);
  /// What all who know a word call it, or 0 where there is none.
  uint64_t wordAt(uint64_t address);
  uint32_t readWord(uint64_t address);
  void writeWord(uint64_t address, uint32_t value);
  /// Moves bytes, and which of them were ever written.
  void copy(uint64_t to, uint64_t from, size_t bytes);
  /// Something that the host does itself.
  Operation hostOperation(CUcontext context, std::string what);

  //===--------------------------------------------------------------------===//
  // Failures
  //===--------------------------------------------------------------------===//

  void report(CUcontext context, CUresult result, const std::string &text);
  std::deque<std::string> reports; // not taken
  void plant(const std::string &function, int nth, int result);
  /// What a planted failure says of this call, or 0. May be
  /// BURST_EMULATED_NEVER.
  int planted(const std::string &function, CUcontext context);

private:
  Gpus() { reset(); }
  std::vector<StreamRef> streamsWithWork() const;
  void begin(Operation &operation);
  bool step(const StreamRef &stream);
  bool check(const Operation &operation, Accesses &accesses, Range range,
             bool writes, const std::string &name, uint64_t base);

  struct Plant {
    std::string function;
    int device; // or -1
    int left, result;
  };
  std::vector<Plant> plants;
  std::vector<StreamRef> unowned; // destroyed, or of a graph, with work to do
  uint32_t agents = 1;            // the first is the host
  size_t nextBuffer = 0;
  int kernels = 0;                 // that run
  std::vector<uint64_t> graveyard; // freed while they did
};

/// The context of this thread.
extern thread_local CUcontext currentContext;

/// A call of a function of the driver: holds the mutex, and says what the call
/// returns before it does anything.
class Call {
public:
  enum Needs : uint8_t { Nothing, Initialised, Context };
  explicit Call(const char *function, Needs needs = Context);

  Gpus &gpus;
  std::unique_lock<std::mutex> lock;
  CUresult result = CUDA_SUCCESS;
  bool isNever = false; // what it asks for is never done

  CUcontext context() const { return currentContext; }
  CUresult put(CUstream stream, Operation operation);
};

#define ENTER(...)                                                             \
  Call call(__func__ __VA_OPT__(, ) __VA_ARGS__);                              \
  if (call.result != CUDA_SUCCESS)                                             \
    return call.result;                                                        \
  [[maybe_unused]] Gpus &gpus = call.gpus

/// Releases the mutex for a while.
struct Unlocked {
  Gpus &gpus;
  explicit Unlocked(Gpus &gpus) : gpus(gpus) { gpus.mutex.unlock(); }
  ~Unlocked() { gpus.mutex.lock(); }
};

} // namespace burst::standins

extern "C" {
#define BURST_DECLARE(result, name, parameters) result name parameters;
BURST_DRIVER_FUNCTIONS(BURST_DECLARE)
#undef BURST_DECLARE
}

#endif // BURST_TEST_STANDINS_GPUS_H
