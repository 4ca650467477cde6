//===- Mpi.c - A transport over MPI ---------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages lie in memory of this library, because MPI may touch it as long as
// it likes: a send cannot be taken back, and a receive only before it was
// matched. Channels are tags, so that MPI's order is the one that is wanted.
//
// Beside the data, ranks tell each other on a communicator of its own that they
// stop, or leave.
//
//===----------------------------------------------------------------------===//

#include "burst/mpi.h"
#include "runtime/mpi/Messages.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// What a message to MPI has at most, and what a collective sends or receives;
// tests have less.
#ifndef BURST_MPI_MOST_BYTES
#define BURST_MPI_MOST_BYTES (INT64_C(1) << 30)
#endif
static const int64_t most_bytes = BURST_MPI_MOST_BYTES;

// How long a rank waits for what others sent before they left, and until they
// leave; and how long it asks MPI without a pause.
static const double grace_seconds = 1, leave_seconds = 10,
                    spin_seconds = 200e-6;

enum { NOTICE_BYTES = 1024, LEAVES = 'l', STOPS = 's' };

// Ranks that differ in their places along some axes of the grid.
typedef struct group {
  burst_group ranks;
  MPI_Comm communicator;
  struct group *next;
} group;

typedef struct mpi {
  MPI_Comm data, collectives, notices;
  group *groups;
  int rank, num_ranks, most_tag;
  // Notices: what is being received, and sent.
  MPI_Request coming;
  char notice[NOTICE_BYTES];
  MPI_Request *going;
  char said[NOTICE_BYTES];
  int num_left;
  double *left; // by rank: when it said that it leaves, or 0
  bool stopped;
  char reason[NOTICE_BYTES];
} mpi;

typedef struct request {
  uint64_t program;
  int64_t num_sides;
  side *sides;
  int num_parts; // what MPI was asked for
  MPI_Request *parts;
  int *side_of; // by part, the number of its side
  // Of a collective: the memory of all sides that receive, by place in the
  // group, and behind it of those that send; bytes of each, and where they
  // begin. What a gather sends lies among what it receives.
  char *together, *sent;
  int *counts, *starts, *sent_counts, *sent_starts;
} request;

// Transports of one process take turns with MPI.
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static void enter(void) { pthread_mutex_lock(&one_at_a_time); }
static void leave(void) { pthread_mutex_unlock(&one_at_a_time); }

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

static int fail_of_mpi(burst_transport_failure *failure, int64_t peer,
                       const char *call, int result) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(result, text, &length);
  return burst_mpi_fail(failure, SYSTEM, peer, "%s: %.*s", call, length, text);
}

//===----------------------------------------------------------------------===//
// Notices
//===----------------------------------------------------------------------===//

static int expect_notice(mpi *mpi) {
  return MPI_Irecv(mpi->notice, NOTICE_BYTES, MPI_BYTE, MPI_ANY_SOURCE, 0,
                   mpi->notices, &mpi->coming);
}

// Hears what others have said.
static void hear(mpi *mpi) {
  for (;;) {
    int is_there = 0;
    MPI_Status status;
    if (mpi->coming == MPI_REQUEST_NULL ||
        MPI_Test(&mpi->coming, &is_there, &status) != MPI_SUCCESS || !is_there)
      return;
    mpi->notice[NOTICE_BYTES - 1] = 0;
    if (mpi->notice[0] == STOPS && !mpi->stopped) {
      mpi->stopped = true;
      snprintf(mpi->reason, sizeof(mpi->reason), "rank %d stopped: %.900s",
               status.MPI_SOURCE, mpi->notice + 1);
    } else if (mpi->notice[0] == LEAVES && mpi->left[status.MPI_SOURCE] == 0) {
      mpi->left[status.MPI_SOURCE] = now();
      ++mpi->num_left;
    }
    if (expect_notice(mpi) != MPI_SUCCESS)
      return;
  }
}

// Says it once; the memory stays.
static void say(mpi *mpi, char kind, const char *reason) {
  mpi->said[0] = kind;
  snprintf(mpi->said + 1, NOTICE_BYTES - 1, "%s", reason);
  for (int rank = 0; rank < mpi->num_ranks; ++rank)
    if (rank != mpi->rank &&
        MPI_Isend(mpi->said, NOTICE_BYTES, MPI_BYTE, rank, 0, mpi->notices,
                  &mpi->going[rank]) != MPI_SUCCESS)
      mpi->going[rank] = MPI_REQUEST_NULL;
}

static void mpi_abort(void *context, const char *reason) {
  mpi *mpi = context;
  enter();
  hear(mpi);
  if (!mpi->stopped) {
    mpi->stopped = true;
    snprintf(mpi->reason, sizeof(mpi->reason), "rank %d stopped: %.900s",
             mpi->rank, reason);
    say(mpi, STOPS, reason);
  }
  leave();
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

static void free_request(request *request) {
  for (int64_t i = 0; request->sides && i < request->num_sides; ++i) {
    if (!request->together)
      free(request->sides[i].memory);
    free(request->sides[i].pieces);
  }
  free(request->together);
  free(request->counts);
  free(request->sides);
  free(request->parts);
  free(request->side_of);
  free(request);
}

static int64_t parts_of(const side *side) {
  return (side->bytes + most_bytes - 1) / most_bytes;
}

// Without memory for what is sent and received.
static request *make_request(const burst_transport_start *start) {
  request *made = calloc(1, sizeof(*made));
  if (!made)
    return NULL;
  made->program = start->program;
  made->num_sides = start->messages.count;
  made->sides = calloc((size_t)made->num_sides, sizeof(side));
  int64_t num_parts = 0;
  bool is_whole = made->sides;
  for (int64_t i = 0; is_whole && i < made->num_sides; ++i) {
    is_whole = burst_mpi_make_side(&start->messages.list[i], &made->sides[i]);
    num_parts += parts_of(&made->sides[i]);
  }
  if (is_whole) {
    made->parts = malloc((size_t)num_parts * sizeof(MPI_Request));
    made->side_of = malloc((size_t)num_parts * sizeof(int));
  }
  if (made->parts && made->side_of)
    return made;
  free_request(made);
  return NULL;
}

static bool give_memory(request *request) {
  for (int64_t i = 0; i < request->num_sides; ++i) {
    side *side = &request->sides[i];
    side->memory = malloc((size_t)side->bytes);
    if (!side->memory)
      return false;
    if (!side->receives)
      burst_mpi_pack(side, request->program);
  }
  return true;
}

// Asks MPI for a message, in parts that it can count.
static int ask(mpi *mpi, request *request, int64_t number, int tag) {
  const side *side = &request->sides[number];
  int result = MPI_SUCCESS;
  for (int64_t at = 0; at < side->bytes && result == MPI_SUCCESS;
       at += most_bytes) {
    int64_t rest = side->bytes - at;
    int bytes = (int)(rest < most_bytes ? rest : most_bytes);
    MPI_Request *part = &request->parts[request->num_parts];
    result = side->receives ? MPI_Irecv(side->memory + at, bytes, MPI_BYTE,
                                        side->peer, tag, mpi->data, part)
                            : MPI_Isend(side->memory + at, bytes, MPI_BYTE,
                                        side->peer, tag, mpi->data, part);
    if (result == MPI_SUCCESS)
      request->side_of[request->num_parts++] = (int)number;
  }
  return result;
}

static int start_messages(mpi *mpi, request *request, int tag,
                          burst_transport_failure *failure) {
  int result = MPI_SUCCESS;
  enter();
  // What is to be received is known before it comes, as far as possible.
  for (int pass = 0; pass < 2; ++pass)
    for (int64_t i = 0; i < request->num_sides && result == MPI_SUCCESS; ++i)
      if (request->sides[i].receives == (pass == 0))
        result = ask(mpi, request, i, tag);
  leave();
  return result == MPI_SUCCESS
             ? 0
             : fail_of_mpi(failure, -1, "MPI_Isend or MPI_Irecv", result);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

static int place_of(int rank, const burst_group *ranks) {
  return (int)(rank / ranks->stride % ranks->num_ranks);
}

// That of the ranks of a group, or MPI_COMM_NULL.
static MPI_Comm communicator_of(const mpi *mpi, const burst_group *ranks) {
  if (ranks->num_ranks == mpi->num_ranks)
    return mpi->collectives;
  for (const group *group = mpi->groups; group; group = group->next)
    if (group->ranks.num_ranks == ranks->num_ranks &&
        group->ranks.stride == ranks->stride)
      return group->communicator;
  return MPI_COMM_NULL;
}

// Whether MPI has a call for all messages of a start, and can count what it
// sends and receives: the same on all ranks, each of which knows all sizes.
static bool is_collective(const mpi *mpi, const burst_messages *messages,
                          const request *request) {
  const burst_group *ranks = &messages->group;
  int64_t most = 0, received = 0, others = ranks->num_ranks - 1;
  if (messages->pattern == BURST_POINT_TO_POINT)
    return false;
  for (int64_t i = 0; i < request->num_sides; ++i) {
    const side *side = &request->sides[i];
    most = side->bytes > most ? side->bytes : most;
    received += side->receives;
  }
  return received == others && request->num_sides == 2 * others &&
         most <= most_bytes / ranks->num_ranks &&
         communicator_of(mpi, ranks) != MPI_COMM_NULL;
}

// Where each message lies.
static int *counts_of(const request *request, const side *side,
                      bool is_exchange) {
  return side->receives || !is_exchange ? request->counts
                                        : request->sent_counts;
}

static bool lay_out(const mpi *mpi, const burst_messages *messages,
                    request *request) {
  const burst_group *ranks = &messages->group;
  bool is_exchange = messages->pattern == BURST_EXCHANGE_ALL;
  size_t members = (size_t)ranks->num_ranks;
  request->counts = calloc(4 * members, sizeof(int));
  if (!request->counts)
    return false;
  request->starts = request->counts + members;
  request->sent_counts = request->starts + members;
  request->sent_starts = request->sent_counts + members;
  for (int64_t i = 0; i < request->num_sides; ++i) {
    const side *side = &request->sides[i];
    bool is_own = !side->receives && !is_exchange;
    counts_of(request, side,
              is_exchange)[place_of(is_own ? mpi->rank : side->peer, ranks)] =
        (int)side->bytes;
  }
  size_t received = 0, sent = 0;
  for (size_t place = 0; place < members; ++place) {
    request->starts[place] = (int)received;
    request->sent_starts[place] = (int)sent;
    received += (size_t)request->counts[place];
    sent += (size_t)request->sent_counts[place];
  }
  request->together = malloc(received + sent);
  if (!request->together)
    return false;
  request->sent = request->together + received;
  const side *own = NULL; // of a gather
  for (int64_t i = 0; i < request->num_sides; ++i) {
    side *side = &request->sides[i];
    if (side->receives) {
      side->memory =
          request->together + request->starts[place_of(side->peer, ranks)];
    } else if (is_exchange) {
      side->memory =
          request->sent + request->sent_starts[place_of(side->peer, ranks)];
      burst_mpi_pack(side, request->program);
    } else {
      side->memory =
          request->together + request->starts[place_of(mpi->rank, ranks)];
      own = side;
    }
  }
  if (own)
    burst_mpi_pack(own, request->program);
  return true;
}

static int start_collective(const mpi *mpi, const burst_messages *messages,
                            request *request,
                            burst_transport_failure *failure) {
  MPI_Comm communicator = communicator_of(mpi, &messages->group);
  bool is_exchange = messages->pattern == BURST_EXCHANGE_ALL;
  enter();
  int result =
      is_exchange
          ? MPI_Ialltoallv(request->sent, request->sent_counts,
                           request->sent_starts, MPI_BYTE, request->together,
                           request->counts, request->starts, MPI_BYTE,
                           communicator, &request->parts[0])
          : MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL,
                            request->together, request->counts, request->starts,
                            MPI_BYTE, communicator, &request->parts[0]);
  leave();
  if (result != MPI_SUCCESS)
    return fail_of_mpi(failure, -1,
                       is_exchange ? "MPI_Ialltoallv" : "MPI_Iallgatherv",
                       result);
  request->num_parts = 1;
  request->side_of[0] = -1;
  return 0;
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

// Another thread may stop it; its reason stays as it is then.
static bool is_stopped(mpi *mpi) {
  enter();
  hear(mpi);
  bool stopped = mpi->stopped;
  leave();
  return stopped;
}

static int mpi_start(void *context, const burst_transport_start *start,
                     void **handle, burst_transport_failure *failure) {
  mpi *mpi = context;
  if (is_stopped(mpi))
    return burst_mpi_fail(failure, PEER_STOPPED, -1, "%s", mpi->reason);
  if (start->channel < 0 || start->channel > mpi->most_tag)
    return burst_mpi_fail(failure, INVALID_ARGUMENT, -1,
                          "channel %" PRId64
                          ", wanted 0 to %d: MPI has no tag for it",
                          start->channel, mpi->most_tag);
  request *made = make_request(start);
  if (!made)
    return burst_mpi_fail_memory(failure,
                                 start->messages.count * (int64_t)sizeof(side));
  const burst_messages *messages = &start->messages;
  bool together = is_collective(mpi, messages, made);
  int failed = !(together ? lay_out(mpi, messages, made) : give_memory(made));
  if (failed)
    burst_mpi_fail_memory(failure, made->sides[0].bytes);
  else
    failed = together ? start_collective(mpi, messages, made, failure)
                      : start_messages(mpi, made, (int)start->channel, failure);
  *handle = made;
  // What MPI was asked for stays.
  if (failed && made->num_parts == 0)
    free_request(made);
  return failed;
}

// Asks MPI what is done; all, some, or an error.
static int poll_parts(request *request, bool *all,
                      burst_transport_failure *failure) {
  int is_done = 0, result = MPI_SUCCESS, culprit = -1;
  *all = true;
  enter();
  for (int i = 0; i < request->num_parts && result == MPI_SUCCESS; ++i) {
    if (request->parts[i] == MPI_REQUEST_NULL)
      continue;
    result = MPI_Test(&request->parts[i], &is_done, MPI_STATUS_IGNORE);
    culprit = request->side_of[i];
    *all &= is_done != 0;
  }
  leave();
  if (result == MPI_SUCCESS)
    return 0;
  int class = MPI_ERR_UNKNOWN;
  MPI_Error_class(result, &class);
  int peer = culprit < 0 ? -1 : request->sides[culprit].peer;
  return class == MPI_ERR_TRUNCATE
             ? burst_mpi_fail(failure, MISMATCH, peer,
                              "it sends more than is wanted")
             : fail_of_mpi(failure, peer, "MPI_Test", result);
}

// The first message that is not done.
static const side *missing(const request *request) {
  for (int i = 0; i < request->num_parts; ++i)
    if (request->parts[i] != MPI_REQUEST_NULL)
      return request->side_of[i] < 0 ? &request->sides[0]
                                     : &request->sides[request->side_of[i]];
  return &request->sides[0];
}

static int check_peers(mpi *mpi, const request *request, double until,
                       burst_transport_failure *failure) {
  const side *waited = missing(request);
  bool stopped = is_stopped(mpi);
  double left = mpi->left[waited->peer], time = now();
  if (stopped)
    return burst_mpi_fail(failure, PEER_STOPPED, waited->peer, "%s",
                          mpi->reason);
  if (left > 0 && time > left + grace_seconds)
    return burst_mpi_fail(failure, PEER_STOPPED, waited->peer,
                          "rank %d stopped: its transport is destroyed",
                          waited->peer);
  if (time < until)
    return 0;
  return burst_mpi_fail(failure, DEADLINE_EXCEEDED, waited->peer, "%s",
                        waited->receives ? "it has not sent"
                                         : "it has not received");
}

// Ranks that share cores let each other run.
static void rest(double began) {
  if (now() - began < spin_seconds) {
    sched_yield();
    return;
  }
  struct timespec pause = {0, 20000};
  nanosleep(&pause, NULL);
}

static int wait_for_parts(mpi *mpi, request *request, double seconds,
                          burst_transport_failure *failure) {
  double began = now();
  for (;;) {
    bool all;
    if (poll_parts(request, &all, failure))
      return 1;
    if (all)
      return 0;
    if (check_peers(mpi, request, began + seconds, failure))
      return 1;
    rest(began);
  }
}

static int mpi_wait(void *context, void *handle, double seconds,
                    burst_transport_failure *failure) {
  request *request = handle;
  if (wait_for_parts(context, request, seconds, failure))
    return 1;
  for (int64_t i = 0; i < request->num_sides; ++i)
    if (request->sides[i].receives &&
        burst_mpi_unpack(&request->sides[i], request->program, failure))
      return 1;
  free_request(request);
  return 0;
}

// Memory that MPI may still touch is not freed.
static void mpi_cancel(void *context, void *handle) {
  (void)context;
  request *request = handle;
  burst_transport_failure ignored;
  bool all;
  if (!poll_parts(request, &all, &ignored) && all)
    free_request(request);
}

//===----------------------------------------------------------------------===//
// Groups, and the end
//===----------------------------------------------------------------------===//

// What all ranks do together, outside of starts.
typedef struct meeting {
  const char *of, *call; // of burst and MPI
  double grace; // how long it goes on when a rank has stopped: where all have
                // come nobody may turn back
  double heard; // when that was
  MPI_Request request;
} meeting;

// Whether ranks still wait for each other: fails where that will not end.
static int poll_meeting(mpi *mpi, meeting *meeting, double began,
                        double seconds, bool *waits,
                        burst_transport_failure *failure) {
  int is_done = 0;
  enter();
  hear(mpi);
  int result = MPI_Test(&meeting->request, &is_done, MPI_STATUS_IGNORE);
  bool stopped = mpi->stopped;
  int gone = -1;
  for (int rank = 0; rank < mpi->num_ranks && gone < 0; ++rank)
    if (mpi->left[rank] > 0 && now() > mpi->left[rank] + grace_seconds)
      gone = rank;
  leave();
  *waits = !is_done;
  if (result != MPI_SUCCESS)
    return fail_of_mpi(failure, -1, meeting->call, result);
  if (is_done)
    return 0;
  if (stopped && meeting->heard == 0)
    meeting->heard = now();
  if (stopped && now() >= meeting->heard + meeting->grace)
    return burst_mpi_fail(failure, PEER_STOPPED, -1, "%s", mpi->reason);
  if (gone >= 0)
    return burst_mpi_fail(failure, PEER_STOPPED, gone,
                          "rank %d stopped: its transport is destroyed", gone);
  return now() < began + seconds
             ? 0
             : burst_mpi_fail(failure, DEADLINE_EXCEEDED, -1,
                              "%s: not all ranks have come for %g s",
                              meeting->of, seconds);
}

static int meet(mpi *mpi, meeting *meeting, double seconds,
                burst_transport_failure *failure) {
  double began = now();
  for (bool waits = true; waits; rest(began))
    if (poll_meeting(mpi, meeting, began, seconds, &waits, failure))
      return 1;
  return 0;
}

// MPI_Comm_split waits for all ranks, so they meet before.
static int mpi_prepare(void *context, const burst_group *ranks, double seconds,
                       burst_transport_failure *failure) {
  mpi *mpi = context;
  if (communicator_of(mpi, ranks) != MPI_COMM_NULL)
    return 0;
  if (is_stopped(mpi))
    return burst_mpi_fail(failure, PEER_STOPPED, -1, "%s", mpi->reason);
  meeting meeting = {
      .of = "MPI_Comm_split", .call = "MPI_Ibarrier", .grace = grace_seconds};
  group *made = calloc(1, sizeof(*made));
  if (!made)
    return burst_mpi_fail_memory(failure, sizeof(*made));
  *made = (group){*ranks, MPI_COMM_NULL, NULL};
  enter();
  int result = MPI_Ibarrier(mpi->collectives, &meeting.request);
  leave();
  if (result != MPI_SUCCESS || meet(mpi, &meeting, seconds, failure)) {
    free(made);
    return result == MPI_SUCCESS
               ? 1
               : fail_of_mpi(failure, -1, meeting.call, result);
  }
  int place = place_of(mpi->rank, ranks);
  enter();
  result =
      MPI_Comm_split(mpi->collectives, mpi->rank - place * (int)ranks->stride,
                     place, &made->communicator);
  if (result == MPI_SUCCESS)
    result = MPI_Comm_set_errhandler(made->communicator, MPI_ERRORS_RETURN);
  leave();
  made->next = mpi->groups;
  mpi->groups = made;
  return result == MPI_SUCCESS
             ? 0
             : fail_of_mpi(failure, -1, "MPI_Comm_split", result);
}

static bool is_said(mpi *mpi) {
  int is_done = 0;
  return MPI_Testall(mpi->num_ranks, mpi->going, &is_done,
                     MPI_STATUSES_IGNORE) == MPI_SUCCESS &&
         is_done;
}

// Whether all ranks leave, and all notices have come.
static bool leave_together(mpi *mpi) {
  double until = now() + leave_seconds;
  bool all = false;
  enter();
  hear(mpi);
  if (!mpi->stopped)
    say(mpi, LEAVES, "");
  leave();
  while (!all && !is_stopped(mpi) && now() < until) {
    enter();
    all = mpi->num_left == mpi->num_ranks - 1 && is_said(mpi);
    leave();
    if (!all)
      rest(0);
  }
  return all;
}

static void free_mpi(mpi *mpi) {
  MPI_Comm *made[] = {&mpi->data, &mpi->collectives, &mpi->notices};
  while (mpi->groups) {
    group *group = mpi->groups;
    mpi->groups = group->next;
    if (group->communicator != MPI_COMM_NULL)
      MPI_Comm_free(&group->communicator);
    free(group);
  }
  for (size_t i = 0; i < sizeof(made) / sizeof(*made); ++i)
    if (*made[i] != MPI_COMM_NULL)
      MPI_Comm_free(made[i]);
  free(mpi->going);
  free(mpi->left);
  free(mpi);
}

static void mpi_destroy(void *context) {
  mpi *mpi = context;
  if (!leave_together(mpi))
    return; // MPI may still touch any of it
  enter();
  MPI_Cancel(&mpi->coming);
  MPI_Wait(&mpi->coming, MPI_STATUS_IGNORE);
  free_mpi(mpi);
  leave();
}

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

static const char *name_of(int level) {
  return level == MPI_THREAD_SINGLE     ? "MPI_THREAD_SINGLE"
         : level == MPI_THREAD_FUNNELED ? "MPI_THREAD_FUNNELED"
                                        : "an unknown thread level";
}

static int check(MPI_Comm communicator, const burst_transport_table *table,
                 burst_transport_failure *failure) {
  int is_initialized = 0, is_finalized = 0, level = 0, is_between = 0;
  // That of a host which knows fewer functions ends before them.
  if (table->size < offsetof(burst_transport_table, prepare) ||
      table->size > sizeof(*table))
    return burst_mpi_fail(failure, INVALID_ARGUMENT, -1,
                          "burst_transport_table: size %zu, wanted %zu to %zu",
                          table->size, offsetof(burst_transport_table, prepare),
                          sizeof(*table));
  MPI_Initialized(&is_initialized);
  MPI_Finalized(&is_finalized);
  if (!is_initialized || is_finalized)
    return burst_mpi_fail(
        failure, INVALID_ARGUMENT, -1,
        "burst_mpi_transport: MPI is %s: call MPI_Init_thread with "
        "MPI_THREAD_SERIALIZED before",
        is_finalized ? "finalized" : "not initialized");
  MPI_Query_thread(&level);
  if (level < MPI_THREAD_SERIALIZED)
    return burst_mpi_fail(
        failure, INVALID_ARGUMENT, -1,
        "burst_mpi_transport: MPI is initialized with %s, wanted at "
        "least MPI_THREAD_SERIALIZED: pass that to MPI_Init_thread",
        name_of(level));
  if (communicator == MPI_COMM_NULL)
    return burst_mpi_fail(failure, INVALID_ARGUMENT, -1,
                          "burst_mpi_transport: MPI_COMM_NULL");
  MPI_Comm_test_inter(communicator, &is_between);
  return is_between ? burst_mpi_fail(
                          failure, INVALID_ARGUMENT, -1,
                          "burst_mpi_transport: an intercommunicator, wanted "
                          "one group of ranks")
                    : 0;
}

static int duplicate(MPI_Comm from, MPI_Comm *to) {
  int result = MPI_Comm_dup(from, to);
  return result == MPI_SUCCESS ? MPI_Comm_set_errhandler(*to, MPI_ERRORS_RETURN)
                               : result;
}

static int connect_ranks(mpi *mpi, MPI_Comm communicator) {
  int result = duplicate(communicator, &mpi->data);
  if (result == MPI_SUCCESS)
    result = duplicate(communicator, &mpi->collectives);
  if (result == MPI_SUCCESS)
    result = duplicate(communicator, &mpi->notices);
  return result == MPI_SUCCESS ? expect_notice(mpi) : result;
}

static mpi *make(MPI_Comm communicator) {
  mpi *made = calloc(1, sizeof(*made));
  if (!made)
    return NULL;
  MPI_Comm_rank(communicator, &made->rank);
  MPI_Comm_size(communicator, &made->num_ranks);
  made->data = made->collectives = made->notices = MPI_COMM_NULL;
  made->coming = MPI_REQUEST_NULL;
  made->left = calloc((size_t)made->num_ranks, sizeof(double));
  made->going = malloc((size_t)made->num_ranks * sizeof(MPI_Request));
  if (!made->left || !made->going) {
    free_mpi(made);
    return NULL;
  }
  for (int rank = 0; rank < made->num_ranks; ++rank)
    made->going[rank] = MPI_REQUEST_NULL;
  int *most_tag = NULL, is_known = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most_tag, &is_known);
  made->most_tag = is_known ? *most_tag : 32767;
  return made;
}

int burst_mpi_transport(MPI_Comm communicator, burst_transport_table *table,
                        burst_transport_failure *failure) {
  if (check(communicator, table, failure))
    return 1;
  enter();
  mpi *made = make(communicator);
  int result = made ? connect_ranks(made, communicator) : MPI_SUCCESS;
  leave();
  if (!made)
    return burst_mpi_fail_memory(failure, sizeof(*made));
  if (result != MPI_SUCCESS) // others may have what this rank lacks
    return fail_of_mpi(failure, -1, "MPI_Comm_dup", result);
  const burst_transport_table filled = {.size = table->size,
                                        .context = made,
                                        .rank = made->rank,
                                        .num_ranks = made->num_ranks,
                                        .reaches = BURST_REACHES_HOST,
                                        .start = mpi_start,
                                        .wait = mpi_wait,
                                        .cancel = mpi_cancel,
                                        .abort = mpi_abort,
                                        .destroy = mpi_destroy,
                                        .prepare = mpi_prepare};
  memcpy(table, &filled, table->size);
  return 0;
}

int burst_mpi_transport_of(int communicator, burst_transport_table *table,
                           burst_transport_failure *failure) {
  int is_initialized = 0;
  MPI_Initialized(&is_initialized);
  return burst_mpi_transport(is_initialized ? MPI_Comm_f2c(communicator)
                                            : MPI_COMM_NULL,
                             table, failure);
}

int burst_mpi_gather(const burst_transport_table *table, const void *mine,
                     int64_t bytes, void *all, double seconds,
                     burst_transport_failure *failure) {
  mpi *mpi = table->context;
  if (bytes < 0 || bytes > most_bytes)
    return burst_mpi_fail(failure, INVALID_ARGUMENT, -1,
                          "burst_mpi_gather: %" PRId64
                          " bytes, wanted 0 to %" PRId64,
                          bytes, most_bytes);
  // Of a gather that fails MPI keeps the memory.
  size_t total = (size_t)bytes * (size_t)mpi->num_ranks;
  char *memory = malloc(total + (size_t)bytes + 1);
  if (!memory)
    return burst_mpi_fail_memory(failure, (int64_t)total + bytes);
  memcpy(memory + total, mine, (size_t)bytes);
  meeting meeting = {.of = "burst_mpi_gather", .call = "MPI_Iallgather"};
  enter();
  int result =
      MPI_Iallgather(memory + total, (int)bytes, MPI_BYTE, memory, (int)bytes,
                     MPI_BYTE, mpi->collectives, &meeting.request);
  leave();
  if (result != MPI_SUCCESS)
    return fail_of_mpi(failure, -1, meeting.call, result);
  if (meet(mpi, &meeting, seconds, failure))
    return 1;
  memcpy(all, memory, total);
  free(memory);
  return 0;
}

static bool has_initialized; // MPI, here

int burst_mpi_open(burst_transport_table *table,
                   burst_transport_failure *failure) {
  int is_initialized = 0, level = 0;
  MPI_Initialized(&is_initialized);
  if (!is_initialized) {
    int result = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    if (result != MPI_SUCCESS)
      return fail_of_mpi(failure, -1, "MPI_Init_thread", result);
    has_initialized = true;
  }
  return burst_mpi_transport(MPI_COMM_WORLD, table, failure);
}

void burst_mpi_close(void) {
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  if (has_initialized && !is_finalized)
    MPI_Finalize();
}
