//===- Mailbox.h - A transport that a host brings ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_TEST_UNIT_RUNTIME_MAILBOX_H
#define BURST_TEST_UNIT_RUNTIME_MAILBOX_H

#include "Harness.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>

namespace burst::test {

/// What an engine of ranks that are threads may do wrong.
enum class Fault {
  None,
  Reorders,     ///< the younger of two messages comes first
  Truncates,    ///< a message that is too large loses its end
  NeverLate,    ///< waits longer than it should
  ForgetsAbort, ///< others are not told
  WritesLate,   ///< what was given up
  WritesGaps,   ///< between elements
  MixesChannels
};

/// Messages that were sent lie in boxes, packed, until they are received.
class Mailboxes {
public:
  explicit Mailboxes(int64_t ranks, Fault fault = Fault::None)
      : fault(fault), ends(ranks) {
    for (int64_t rank = 0; rank < ranks; ++rank)
      ends[rank] = {this, rank};
  }
  Mailboxes(const Mailboxes &) = delete;
  virtual ~Mailboxes() = default;

  burst_transport_table table(int64_t rank) {
    burst_transport_table made = {};
    made.size = sizeof(made);
    made.context = &ends[rank];
    made.rank = rank;
    made.num_ranks = int64_t(ends.size());
    made.reaches = reaches;
    made.start = [](void *context, const burst_transport_start *start,
                    void **request, burst_transport_failure *failure) {
      auto &end = *static_cast<End *>(context);
      return end.boxes->start(end.rank, *start, request, *failure);
    };
    made.wait = [](void *context, void *request, double seconds,
                   burst_transport_failure *failure) {
      auto &end = *static_cast<End *>(context);
      return end.boxes->wait(end.rank, *static_cast<Request *>(request),
                             seconds, *failure);
    };
    made.cancel = [](void *context, void *request) {
      static_cast<End *>(context)->boxes->cancel(
          static_cast<Request *>(request));
    };
    made.abort = [](void *context, const char *reason) {
      auto &end = *static_cast<End *>(context);
      end.boxes->abort(end.rank, reason);
    };
    made.destroy = [](void *context) {
      ++static_cast<End *>(context)->boxes->destroyed;
    };
    return made;
  }

  std::atomic<int> destroyed = 0;
  std::atomic<int> gathers = 0; ///< starts that every rank is part of

protected:
  struct End {
    Mailboxes *boxes;
    int64_t rank;
  };
  struct Incoming {
    int64_t peer, channel;
    int64_t number; ///< among those of this source, destination and channel
    std::vector<burst_piece> pieces;
    bool isThere = false;
  };
  struct Request {
    std::vector<Incoming> incoming;
    void *stream;
  };
  using Packed = std::vector<std::vector<char>>; // by piece

  int64_t reaches = BURST_REACHES_HOST;

  /// Copies elements that lie together.
  virtual void load(char *to, const char *from, size_t bytes, void *stream) {
    (void)stream;
    std::memcpy(to, from, bytes);
  }
  virtual void store(char *to, const char *from, size_t bytes, void *stream) {
    (void)stream;
    std::memcpy(to, from, bytes);
  }

private:
  static int fail(burst_transport_failure &failure, burst_code code,
                  int64_t peer, const std::string &message) {
    failure.code = code;
    failure.peer = peer;
    std::snprintf(failure.message, sizeof(failure.message), "%s",
                  message.c_str());
    return 1;
  }

  /// Calls a function with where each row of a piece begins, and its size.
  template <typename F>
  static void forRows(const burst_piece &piece, F rows) {
    const int64_t *sizes = piece.sizes, *strides = piece.strides;
    size_t bytes = size_t(sizes[3] * piece.element_bytes);
    for (int64_t i = 0; i < sizes[0]; ++i)
      for (int64_t j = 0; j < sizes[1]; ++j)
        for (int64_t k = 0; k < sizes[2]; ++k)
          rows(static_cast<char *>(piece.data) +
                   (i * strides[0] + j * strides[1] + k * strides[2]) *
                       piece.element_bytes,
               bytes);
  }

  int start(int64_t rank, const burst_transport_start &start, void **request,
            burst_transport_failure &failure) {
    std::unique_lock lock(mutex);
    if (isTold(rank))
      return fail(failure, BURST_PEER_STOPPED, -1, *reason);
    auto made = std::make_unique<Request>();
    made->stream = start.cuda_stream;
    gathers += start.messages.pattern == BURST_GATHER_ALL;
    for (int64_t i = 0; i < start.messages.count; ++i) {
      const burst_message &message = start.messages.list[i];
      int64_t channel = fault == Fault::MixesChannels ? 0 : start.channel;
      if (message.receives) {
        made->incoming.push_back(
            {message.peer,
             channel,
             numReceives[{message.peer, rank, channel}]++,
             {message.pieces, message.pieces + message.num_pieces}});
        continue;
      }
      Packed packed(message.num_pieces);
      for (int64_t p = 0; p < message.num_pieces; ++p)
        forRows(message.pieces[p], [&](char *row, size_t bytes) {
          packed[p].resize(packed[p].size() + bytes);
          load(&*packed[p].end() - bytes, row, bytes, start.cuda_stream);
        });
      int64_t number = numSends[{rank, message.peer, channel}]++;
      if (fault == Fault::Reorders)
        number ^= 1;
      sent[{rank, message.peer, channel}][number] = std::move(packed);
    }
    *request = made.release();
    changed.notify_all();
    return 0;
  }

  bool isTold(int64_t rank) const {
    return reason && (fault != Fault::ForgetsAbort || rank == stopped);
  }

  int receive(int64_t rank, Request &request, Incoming &message,
              burst_transport_failure &failure) {
    auto &box = sent[{message.peer, rank, message.channel}];
    auto found = box.find(message.number);
    if (found == box.end())
      return -1;
    Packed packed = std::move(found->second);
    box.erase(found);
    for (size_t p = 0; p < message.pieces.size(); ++p) {
      const burst_piece &piece = message.pieces[p];
      const int64_t *sizes = piece.sizes;
      int64_t bytes =
          sizes[0] * sizes[1] * sizes[2] * sizes[3] * piece.element_bytes;
      if (packed.size() != message.pieces.size() ||
          (int64_t(packed[p].size()) != bytes && fault != Fault::Truncates))
        return fail(failure, BURST_MISMATCH, message.peer,
                    "it sent other pieces than are wanted");
      write(piece, packed[p].data(), request.stream);
    }
    message.isThere = true;
    return 0;
  }

  void write(const burst_piece &piece, const char *from, void *stream) {
    forRows(piece, [&](char *row, size_t bytes) {
      store(row, from, bytes, stream);
      from += bytes;
    });
    if (fault == Fault::WritesGaps && piece.sizes[2] > 1 &&
        piece.strides[2] > piece.sizes[3])
      static_cast<char *>(piece.data)[piece.sizes[3] * piece.element_bytes] = 0;
  }

  int wait(int64_t rank, Request &request, double seconds,
           burst_transport_failure &failure) {
    auto until = std::chrono::steady_clock::now() +
                 std::chrono::duration<double>(
                     fault == Fault::NeverLate ? seconds + 15 : seconds);
    std::unique_lock lock(mutex);
    for (Incoming &message : request.incoming)
      while (!message.isThere) {
        if (isTold(rank))
          return fail(failure, BURST_PEER_STOPPED, message.peer, *reason);
        int result = receive(rank, request, message, failure);
        if (result > 0)
          return result;
        if (result < 0 &&
            changed.wait_until(lock, until) == std::cv_status::timeout)
          return fail(failure, BURST_DEADLINE_EXCEEDED, message.peer,
                      "it has not sent");
      }
    delete &request;
    return 0;
  }

  void cancel(Request *request) {
    std::unique_lock lock(mutex);
    if (fault == Fault::WritesLate) {
      late.emplace_back([data = request->incoming.front().pieces.front().data] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        *static_cast<char *>(data) = 0;
      });
    }
    delete request;
  }

  void abort(int64_t rank, const char *why) {
    std::unique_lock lock(mutex);
    stopped = rank;
    if (!reason)
      reason = "rank " + std::to_string(rank) + " stopped: " + why;
    changed.notify_all();
  }

  Fault fault;
  std::vector<End> ends;
  std::mutex mutex;
  std::condition_variable changed;
  /// By source, destination and channel.
  using Route = std::tuple<int64_t, int64_t, int64_t>;
  std::map<Route, std::map<int64_t, Packed>> sent;
  std::map<Route, int64_t> numSends, numReceives;
  std::optional<std::string> reason;
  int64_t stopped = -1;
  std::vector<std::jthread> late;
};

} // namespace burst::test

#endif // BURST_TEST_UNIT_RUNTIME_MAILBOX_H
