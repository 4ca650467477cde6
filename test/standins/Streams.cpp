//===- Streams.cpp - Streams, events and graphs of the emulated driver ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/standins/Gpus.h"

#include <algorithm>
#include <cstring>
#include <thread>

using namespace burst::standins;

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

CUresult cuStreamCreate(CUstream *stream, unsigned int flags) {
  ENTER();
  if (flags & ~unsigned(CU_STREAM_NON_BLOCKING))
    return CUDA_ERROR_INVALID_VALUE;
  StreamRef made = gpus.createStream(currentContext);
  *stream = made.get();
  gpus.streams[*stream] = std::move(made);
  return CUDA_SUCCESS;
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags,
                                    int priority) {
  return cuStreamCreate(stream, flags);
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  ENTER(Call::Initialised);
  StreamRef found = stream ? gpus.find(stream) : nullptr;
  if (!found)
    return CUDA_ERROR_INVALID_HANDLE;
  gpus.disown(found);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) {
  ENTER(Call::Initialised);
  StreamRef found = gpus.find(stream);
  if (!found)
    return CUDA_ERROR_INVALID_HANDLE;
  *context = found->context;
  return CUDA_SUCCESS;
}

/// What no stream may be asked that captures.
static CUresult refuseCapture(const StreamRef &stream) {
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!stream->capture)
    return CUDA_SUCCESS;
  stream->capture->isInvalid = true;
  return captureUnsupported;
}

CUresult cuStreamSynchronize(CUstream stream) {
  ENTER();
  StreamRef found = gpus.find(stream);
  if (CUresult refused = refuseCapture(found))
    return refused;
  return gpus.synchronise(found, found->asked, call.lock);
}

CUresult cuStreamQuery(CUstream stream) {
  ENTER();
  StreamRef found = gpus.find(stream);
  if (CUresult refused = refuseCapture(found))
    return refused;
  bool isDone = gpus.poll(found, found->asked);
  if (found->context->sticky)
    return found->context->sticky;
  return isDone ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr memory,
                                 uint32_t value, unsigned int flags) {
  ENTER();
  if (flags != CU_STREAM_WRITE_VALUE_DEFAULT)
    return notSupported;
  uint64_t word = gpus.wordAt(memory);
  if (!word)
    return CUDA_ERROR_INVALID_VALUE;
  Operation operation{.what = "write of a value"};
  operation.value = word;
  operation.run = [=, &gpus](Operation &now) {
    auto &[initial, writes] = gpus.words[word];
    if (writes.empty())
      initial = gpus.readWord(memory);
    gpus.writeWord(memory, value);
    writes.emplace_back(value, now.clock);
    if (writes.size() > 64)
      writes.pop_front();
  };
  return call.put(stream, std::move(operation));
}

/// A stream that finds a value waits for the first write that satisfies it, and
/// for no later one.
static void passWait(Gpus &gpus, Operation &now, uint64_t word,
                     const std::function<bool(uint32_t)> &satisfies) {
  const auto &[initial, writes] = gpus.words[word];
  if (satisfies(initial))
    return;
  auto last =
      std::find_if(writes.rbegin(), writes.rend(),
                   [&](const auto &write) { return !satisfies(write.first); });
  if (auto first = last.base(); first != writes.end())
    now.clock.join(first->second);
  else // the host, or another process
    now.stream->isReleased = true;
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr memory,
                                uint32_t value, unsigned int flags) {
  ENTER();
  if (flags != CU_STREAM_WAIT_VALUE_GEQ && flags != CU_STREAM_WAIT_VALUE_EQ)
    return notSupported;
  uint64_t word = gpus.wordAt(memory);
  if (!word)
    return CUDA_ERROR_INVALID_VALUE;
  Operation operation{.what = "wait for a value"};
  operation.await = [=, &gpus](Operation &now) {
    auto satisfies = [=](uint32_t found) {
      return flags == CU_STREAM_WAIT_VALUE_EQ ? found == value
                                              : int32_t(found - value) >= 0;
    };
    while (!satisfies(gpus.readWord(memory)))
      if (!gpus.advanceToValue(word)) {
        gpus.advanceForOthers();
        return false;
      }
    passWait(gpus, now, word, satisfies);
    return true;
  };
  return call.put(stream, std::move(operation));
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

CUresult cuEventCreate(CUevent *event, unsigned int flags) {
  ENTER();
  if (flags & ~unsigned(CU_EVENT_DISABLE_TIMING))
    return flags & CU_EVENT_INTERPROCESS ? notSupported
                                         : CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_unique<CUevent_st>();
  made->context = currentContext;
  made->isTimed = !(flags & CU_EVENT_DISABLE_TIMING);
  *event = made.get();
  gpus.events[*event] = std::move(made);
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
  ENTER(Call::Initialised);
  return gpus.events.erase(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  ENTER();
  StreamRef found = gpus.find(stream);
  if (!found || !gpus.events.contains(event) ||
      event->context != found->context)
    return CUDA_ERROR_INVALID_HANDLE;
  event->capture = found->capture;
  if (!found->capture) {
    event->recording = gpus.record(found);
    return CUDA_SUCCESS;
  }
  Capture &capture = *found->capture;
  event->captured = capture.recordings.size();
  gpus.submit(found, [number = event->captured, &gpus](const StreamRef &onto,
                                                       Replay *replay) {
    replay->recordings[number] = gpus.record(onto);
  });
  capture.recordings.push_back(capture.clocks[found->captured]);
  return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  ENTER();
  StreamRef found = gpus.find(stream);
  if (!found || !gpus.events.contains(event))
    return CUDA_ERROR_INVALID_HANDLE;
  if (flags)
    return notSupported;
  if (call.isNever)
    return CUDA_SUCCESS;
  if (!event->capture || event->capture->isEnded) {
    if (found->capture) {
      found->capture->isInvalid = true;
      return captureIsolation;
    }
    if (event->recording)
      gpus.wait(found, event->recording);
    return CUDA_SUCCESS;
  }
  const CaptureRef &capture = event->capture;
  if (!found->capture) { // it joins
    found->capture = capture;
    found->captured = uint32_t(capture->clocks.size());
    capture->clocks.emplace_back();
    capture->streams.push_back(found);
  }
  if (found->capture != capture) {
    found->capture->isInvalid = capture->isInvalid = true;
    return captureMerge;
  }
  capture->clocks[found->captured].join(capture->recordings[event->captured]);
  gpus.submit(found, [number = event->captured, &gpus](const StreamRef &onto,
                                                       Replay *replay) {
    gpus.wait(onto, replay->recordings[number]);
  });
  return CUDA_SUCCESS;
}

static CUresult refuseCaptured(const Gpus &gpus, CUevent event) {
  if (!gpus.events.contains(event))
    return CUDA_ERROR_INVALID_HANDLE;
  if (!event->capture)
    return CUDA_SUCCESS;
  event->capture->isInvalid = true;
  return capturedEvent;
}

CUresult cuEventQuery(CUevent event) {
  ENTER();
  if (CUresult refused = refuseCaptured(gpus, event))
    return refused;
  if (!event->recording)
    return CUDA_SUCCESS;
  RecordingRef recording = event->recording;
  bool isDone = gpus.poll(recording->stream, recording->number);
  if (event->context->sticky)
    return event->context->sticky;
  return isDone ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent event) {
  ENTER();
  if (CUresult refused = refuseCaptured(gpus, event))
    return refused;
  if (!event->recording)
    return CUDA_SUCCESS;
  RecordingRef recording = event->recording;
  return gpus.synchronise(recording->stream, recording->number, call.lock);
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end) {
  ENTER(Call::Initialised);
  for (CUevent event : {begin, end}) {
    if (!gpus.events.contains(event) || !event->isTimed || !event->recording)
      return CUDA_ERROR_INVALID_HANDLE;
    if (!event->recording->isDone)
      return CUDA_ERROR_NOT_READY;
  }
  *milliseconds =
      float(1e3 * (end->recording->seconds - begin->recording->seconds));
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  ENTER();
  StreamRef found = stream ? gpus.find(stream) : nullptr;
  if (!found)
    return stream ? CUDA_ERROR_INVALID_HANDLE : captureUnsupported;
  if (found->capture)
    return CUDA_ERROR_INVALID_VALUE;
  found->capture = std::make_shared<Capture>();
  found->capture->clocks.emplace_back();
  found->capture->streams.push_back(found);
  found->captured = 0;
  return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  ENTER();
  StreamRef found = gpus.find(stream);
  if (!found || !found->capture || found->captured)
    return captureUnmatched;
  CaptureRef capture = found->capture;
  capture->isEnded = true;
  for (const StreamRef &joined : capture->streams)
    joined->capture = nullptr;
  capture->streams.clear();
  *graph = nullptr;
  if (capture->isInvalid)
    return captureInvalidated;
  // The first stream must be behind all that the others do.
  for (uint32_t i = 1; i < capture->clocks.size(); ++i)
    if (!capture->clocks[0].covers({i, capture->clocks[i].at(i), ""}))
      return captureUnjoined;
  auto made = std::make_unique<CUgraph_st>(std::move(capture));
  *graph = made.get();
  gpus.graphs[*graph] = std::move(made);
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  ENTER();
  StreamRef found = gpus.find(stream);
  if (!found)
    return CUDA_ERROR_INVALID_HANDLE;
  *status = !found->capture             ? CU_STREAM_CAPTURE_STATUS_NONE
            : found->capture->isInvalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                        : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  // No call is refused for the captures of other streams.
  static thread_local CUstreamCaptureMode current =
      CU_STREAM_CAPTURE_MODE_GLOBAL;
  ENTER(Call::Initialised);
  std::swap(current, *mode);
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph,
                                     unsigned long long flags) {
  ENTER();
  if (!gpus.graphs.contains(graph) || flags)
    return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_unique<CUgraphExec_st>(graph->capture);
  *executable = made.get();
  gpus.executables[*executable] = std::move(made);
  return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  ENTER();
  StreamRef found = gpus.find(stream);
  if (!gpus.executables.contains(executable))
    return CUDA_ERROR_INVALID_VALUE;
  if (CUresult refused = refuseCapture(found))
    return refused;
  gpus.launch(*executable->capture, found);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec executable) {
  ENTER(Call::Initialised);
  return gpus.executables.erase(executable) ? CUDA_SUCCESS
                                            : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphDestroy(CUgraph graph) {
  ENTER(Call::Initialised);
  return gpus.graphs.erase(graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
