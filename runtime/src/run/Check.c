//===- Check.c - Whether a transport keeps the rules ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All ranks make the same script from the seed, and each runs its part of it as
// a program: so transports are tried as runs use them, on CPUs and GPUs. A
// script is a list of steps; at each of them a rank starts what it has to send
// and to receive there, and may wait for starts of earlier steps. What a rank
// sends is known to all, so each knows what it should have received.
//
//===----------------------------------------------------------------------===//

#include "burst/internal/config.h"
#include "burst/internal/error.h"
#include "burst/internal/hash.h"
#include "runtime/src/base/Clock.h"
#include "runtime/src/device/Device.h"
#include "runtime/src/run/Bytes.h"
#include "runtime/src/transport/Transport.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const double default_deadline = 60;

// Of the steps that fail: when a rank gives up, how long the others wait until
// they do what comes too late, and in which time they hear of a failure.
static const double short_deadline = 0.3, pause_seconds = 0.8,
                    told_seconds = 10;

static const char stop_reason[] = "the check of its transport stops it";

enum { NUM_CHANNELS = 3, MOST_PIECES = 3, ALIGNMENT = 8, BUFFER_FILL = 0xA5 };

//===----------------------------------------------------------------------===//
// Scripts
//===----------------------------------------------------------------------===//

// A piece on both sides: where it begins in the memory of what is sent and of
// what is received, and how far its elements lie apart there.
typedef struct piece {
  int64_t element_bytes;
  int64_t sizes[4];
  int64_t from, to; // bytes
  int64_t from_strides[4], to_strides[4];
} piece;

typedef struct message {
  int64_t from, to, num_pieces;
  piece pieces[MOST_PIECES];
} message;

typedef struct step {
  int64_t channel, pattern;
  burst_group group;
  bool splits;   // sends and receives are starts of their own
  bool swaps;    // on odd ranks it is behind the next step, of another channel
  int64_t first; // of the messages
  int64_t count;
  uint64_t waits; // random bits
} step;

typedef struct script {
  int64_t num_ranks;
  uint64_t state; // of random numbers
  int64_t num_steps, num_messages, max_messages;
  step *steps;
  message *messages;
  int64_t *sent, *received; // bytes that each rank uses of its memory
  bool in_order;            // on all ranks
  bool failed;              // no memory for messages

  // What the program of a rank uses.
  int64_t rank;
  double pause;  // before the first start
  bool is_short; // what is received is one element less than what is sent
  burst_message *list;
  burst_piece *pieces;
  int64_t *tokens, num_tokens;
} script;

static uint64_t next(script *script) {
  script->state += UINT64_C(0x9E3779B97F4A7C15);
  return burst_hash(BURST_HASH_BEGIN, &script->state, sizeof(script->state));
}

// From 0 to `below` - 1.
static int64_t choose(script *script, int64_t below) {
  return (int64_t)(next(script) >> 16) % below;
}

// Rows lie as far apart as `gap` more elements; the rest of the piece.
static int64_t lay_out(const piece *piece, int64_t gap, int64_t strides[4]) {
  int64_t stride = 1;
  for (int d = 3; d >= 0; --d) {
    strides[d] = stride;
    stride = stride * piece->sizes[d] + (d == 3 ? gap : 0);
  }
  int64_t bytes = stride * piece->element_bytes;
  return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void add_piece(script *script, message *message, int64_t elements) {
  piece *added = &message->pieces[message->num_pieces++];
  *added = (piece){.element_bytes = INT64_C(1) << choose(script, 4)};
  for (int d = 0; d < 3; ++d)
    added->sizes[d] = elements ? 1 : 1 + choose(script, 4);
  added->sizes[3] = elements ? elements : 1 + choose(script, 33);
  added->from = script->sent[message->from];
  added->to = script->received[message->to];
  script->sent[message->from] += lay_out(
      added, choose(script, 2) * choose(script, 9), added->from_strides);
  script->received[message->to] +=
      lay_out(added, choose(script, 2) * choose(script, 9), added->to_strides);
}

static message *add_message(script *script, int64_t from, int64_t to) {
  if (script->num_messages == script->max_messages) {
    int64_t most = 2 * script->max_messages + 64;
    message *grown = realloc(script->messages, (size_t)most * sizeof(message));
    if (!grown) {
      script->failed = true;
      return NULL;
    }
    script->messages = grown;
    script->max_messages = most;
  }
  message *added = &script->messages[script->num_messages++];
  *added = (message){.from = from, .to = to};
  ++script->steps[script->num_steps - 1].count;
  return added;
}

static void send(script *script, int64_t from, int64_t to, int64_t elements) {
  message *added = from == to ? NULL : add_message(script, from, to);
  for (int64_t i = choose(script, MOST_PIECES); added && i >= 0; --i)
    add_piece(script, added, elements);
}

static void begin_step(script *script) {
  script->steps[script->num_steps++] =
      (step){.channel = choose(script, NUM_CHANNELS),
             .splits = !script->in_order && choose(script, 4) == 0,
             .first = script->num_messages,
             .waits = next(script)};
}

static void add_shift(script *script, int64_t elements) {
  int64_t distance = 1 + choose(script, script->num_ranks);
  begin_step(script);
  for (int64_t r = 0; r < script->num_ranks; ++r)
    send(script, r, (r + distance) % script->num_ranks, elements);
}

// From each rank to one in four.
static void add_some(script *script) {
  begin_step(script);
  for (int64_t r = 0; r < script->num_ranks; ++r)
    for (int64_t peer = 0; peer < script->num_ranks; ++peer)
      if (choose(script, 4) == 0)
        send(script, r, peer, 0);
}

// All ranks and, of an even number, both kinds of groups of half of them.
enum { NUM_GROUPS = 3 };

static burst_group group_of(const script *script, int64_t kind) {
  int64_t ranks = script->num_ranks;
  if (kind == 0 || ranks % 2 != 0 || ranks == 2)
    return (burst_group){ranks, 1};
  return (burst_group){ranks / 2, kind == 1 ? 1 : 2};
}

// From each rank of a group to all others messages of one size, which is that
// of all ranks or another one on each: in a gather they are the same.
static void add_pattern(script *script, int64_t pattern, bool is_even) {
  begin_step(script);
  step *step = &script->steps[script->num_steps - 1];
  burst_group group = group_of(script, choose(script, NUM_GROUPS));
  step->splits = false;
  step->pattern = pattern;
  step->group = group;
  for (int64_t r = 0; r < script->num_ranks; ++r) {
    const int64_t first =
        is_even ? step->first : script->num_messages; // of this size
    const int64_t own = script->num_messages;
    int64_t place = r / group.stride % group.num_ranks;
    for (int64_t d = 1; d < group.num_ranks; ++d) {
      int64_t peer = r + ((place + d) % group.num_ranks - place) * group.stride;
      if (script->num_messages == first) {
        send(script, r, peer, 0);
        continue;
      }
      message *added = add_message(script, r, peer);
      if (!added)
        return;
      const message *same = &script->messages[first];
      added->num_pieces = same->num_pieces;
      for (int64_t i = 0; i < same->num_pieces; ++i) {
        piece *piece = &added->pieces[i];
        *piece = same->pieces[i];
        piece->to = script->received[peer];
        script->received[peer] +=
            lay_out(piece, choose(script, 9), piece->to_strides);
        if (pattern == BURST_GATHER_ALL && d > 1) {
          piece->from = script->messages[own].pieces[i].from;
          memcpy(piece->from_strides,
                 script->messages[own].pieces[i].from_strides,
                 sizeof(piece->from_strides));
          continue;
        }
        piece->from = script->sent[r];
        script->sent[r] +=
            lay_out(piece, choose(script, 9), piece->from_strides);
      }
    }
  }
}

enum { NUM_STEPS = 96, LARGE_ELEMENTS = 150000, SMALL_ELEMENTS = 100 };

static void add_all(script *script) {
  for (int64_t i = 0; i < NUM_STEPS; ++i) {
    if (i % 48 == 20)
      add_shift(script, LARGE_ELEMENTS);
    else if (i % 8 == 3)
      add_pattern(script, BURST_GATHER_ALL, i % 16 == 3);
    else if (i % 8 == 7)
      add_pattern(script, BURST_EXCHANGE_ALL, i % 16 == 7);
    else if (i % 8 == 6)
      add_some(script);
    else
      add_shift(script, 0);
    if (i % 8 == 1 && !script->in_order) {
      step *last = &script->steps[i];
      last[-1].swaps = true;
      last->channel = (last[-1].channel + 1) % NUM_CHANNELS;
    }
  }
}

// From rank 0 to rank 1 or, in steps of their own, to all others.
static void add_from_first(script *script, bool to_all) {
  for (int64_t peer = 1; peer < (to_all ? script->num_ranks : 2); ++peer) {
    begin_step(script);
    script->steps[script->num_steps - 1].channel = 0;
    send(script, 0, peer, SMALL_ELEMENTS);
  }
}

static void free_script(script *script) {
  free(script->steps);
  free(script->messages);
  free(script->sent);
  free(script->received);
  free(script->list);
  free(script->pieces);
  free(script->tokens);
}

static burst_error *make_script(const burst_check_config *config,
                                script *script) {
  size_t ranks = (size_t)config->transport->num_ranks;
  size_t steps = NUM_STEPS + ranks;
  script->num_ranks = config->transport->num_ranks;
  script->rank = config->transport->rank;
  script->state = (uint64_t)config->seed;
  script->in_order = config->in_order != 0;
  script->steps = calloc(steps, sizeof(step));
  script->sent = calloc(ranks, sizeof(int64_t));
  script->received = calloc(ranks, sizeof(int64_t));
  script->tokens = calloc(2 * steps, sizeof(int64_t));
  script->list = calloc(2 * ranks, sizeof(burst_message));
  script->pieces = calloc(2 * ranks * MOST_PIECES, sizeof(burst_piece));
  if (!script->steps || !script->sent || !script->received || !script->tokens ||
      !script->list || !script->pieces)
    return burst_error_no_memory(steps * sizeof(step));
  if (config->what == BURST_CHECK_MESSAGES)
    add_all(script);
  else
    add_from_first(script, config->what == BURST_CHECK_STOP);
  return script->failed ? burst_error_no_memory((size_t)script->max_messages *
                                                sizeof(message))
                        : NULL;
}

//===----------------------------------------------------------------------===//
// The program of a rank
//===----------------------------------------------------------------------===//

static burst_piece piece_of(const piece *piece, char *memory, bool receives) {
  burst_piece made = {.data = memory + (receives ? piece->to : piece->from),
                      .element_bytes = piece->element_bytes};
  memcpy(made.sizes, piece->sizes, sizeof(made.sizes));
  memcpy(made.strides, receives ? piece->to_strides : piece->from_strides,
         sizeof(made.strides));
  return made;
}

// Starts what a rank sends at a step, what it receives, or both.
static void start(burst_rank *rank, const burst_table *table, script *script,
                  const step *step, char *const *memory, bool sends,
                  bool receives) {
  burst_piece *pieces = script->pieces;
  burst_messages messages = {0, step->pattern, script->list, step->group};
  for (int64_t i = 0; i < step->count; ++i) {
    const message *message = &script->messages[step->first + i];
    bool comes = message->to == script->rank;
    if (comes ? !receives : !sends || message->from != script->rank)
      continue;
    script->list[messages.count++] =
        (burst_message){comes ? message->from : message->to, comes,
                        message->num_pieces, pieces};
    for (int64_t p = 0; p < message->num_pieces; ++p) {
      *pieces = piece_of(&message->pieces[p], memory[comes], comes);
      pieces->sizes[3] -= comes && script->is_short;
      ++pieces;
    }
  }
  script->tokens[script->num_tokens++] =
      table->start(rank, step->channel, &messages);
}

// For about half of what is under way, in an order that depends on the rank.
static void wait_for_some(burst_rank *rank, const burst_table *table,
                          script *script, uint64_t bits, bool all) {
  bits ^= bits >> (script->rank % 32);
  if (!all && bits % 3 == 0)
    return;
  int64_t leave = all ? 0 : script->num_tokens / 2;
  while (script->num_tokens > leave) {
    bits = bits * UINT64_C(6364136223846793005) + 1442695040888963407;
    int64_t chosen = (int64_t)(bits >> 33) % script->num_tokens;
    int64_t token = script->tokens[chosen];
    script->tokens[chosen] = script->tokens[--script->num_tokens];
    table->wait(rank, token);
  }
}

static void pause_for(double seconds) {
  int64_t time = burst_nanoseconds(seconds);
  struct timespec length = {time / 1000000000, time % 1000000000};
  nanosleep(&length, NULL);
}

static void run(void *context, burst_rank *rank, const burst_table *table,
                char *sent, char *received) {
  script *script = context;
  char *const memory[] = {sent, received};
  pause_for(script->pause);
  for (int64_t i = 0; i < script->num_steps; ++i) {
    const step *step = &script->steps[i];
    if (step->swaps && script->rank % 2 == 1)
      ++step;
    else if (i > 0 && step[-1].swaps && script->rank % 2 == 1)
      --step;
    bool sends_first = !step->splits || script->rank % 2 == 0;
    if (step->splits) {
      start(rank, table, script, step, memory, sends_first, !sends_first);
      start(rank, table, script, step, memory, !sends_first, sends_first);
    } else {
      start(rank, table, script, step, memory, true, true);
    }
    if (!script->steps[i].swaps)
      wait_for_some(rank, table, script, step->waits, false);
  }
  wait_for_some(rank, table, script, 0, true);
}

//===----------------------------------------------------------------------===//
// What was received
//===----------------------------------------------------------------------===//

static unsigned char byte_of(uint64_t seed, int64_t rank, int64_t at) {
  uint64_t x = seed + (uint64_t)rank * UINT64_C(0x9E3779B97F4A7C15) +
               (uint64_t)at * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 29)) * UINT64_C(0x94D049BB133111EB);
  return (unsigned char)(x >> 56);
}

#define BROKEN(...) burst_error_create(BURST_INVALID_ARGUMENT, "", __VA_ARGS__)

// What lies between elements, of memory that was filled, stays as it was.
static burst_error *compare(const script *script, uint64_t seed,
                            unsigned char *received, bool was_filled) {
  for (int64_t m = 0; m < script->num_messages; ++m) {
    const message *message = &script->messages[m];
    for (int64_t p = 0; message->to == script->rank && p < message->num_pieces;
         ++p) {
      const piece *piece = &message->pieces[p];
      const int64_t *sizes = piece->sizes, *from = piece->from_strides,
                    *to = piece->to_strides;
      for (int64_t i = 0; i < sizes[0] * sizes[1] * sizes[2] * sizes[3]; ++i) {
        int64_t at[4] = {i / (sizes[3] * sizes[2] * sizes[1]),
                         i / (sizes[3] * sizes[2]) % sizes[1],
                         i / sizes[3] % sizes[2], i % sizes[3]};
        int64_t source = piece->from, target = piece->to;
        for (int d = 0; d < 4; ++d) {
          source += at[d] * from[d] * piece->element_bytes;
          target += at[d] * to[d] * piece->element_bytes;
        }
        for (int64_t b = 0; b < piece->element_bytes; ++b) {
          if (received[target + b] != byte_of(seed, message->from, source + b))
            return BROKEN("transport check: rank %" PRId64
                          " got wrong data from rank %" PRId64
                          ", in message %" PRId64 " of all, piece %" PRId64
                          ", element %" PRId64,
                          script->rank, message->from, m, p, i);
          received[target + b] = BUFFER_FILL;
        }
      }
    }
  }
  for (int64_t i = 0; was_filled && i < script->received[script->rank]; ++i)
    if (received[i] != BUFFER_FILL)
      return BROKEN("transport check: rank %" PRId64 ": byte %" PRId64
                    " of its memory, of no message, was "
                    "written",
                    script->rank, i);
  return NULL;
}

static burst_error *untouched(const script *script,
                              const unsigned char *received) {
  for (int64_t i = 0; i < script->received[script->rank]; ++i)
    if (received[i] != BUFFER_FILL)
      return BROKEN("transport check: deadline: rank %" PRId64
                    ": memory of a message that it had given up was written",
                    script->rank);
  return NULL;
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

typedef struct trial {
  const burst_check_config *config;
  script script;
  unsigned char *sent, *received;
  int64_t sent_bytes, received_bytes;
  bool is_gpu;
  double seconds; // that the run took
} trial;

static int64_t largest(const int64_t *values, int64_t count) {
  int64_t found = ALIGNMENT;
  for (int64_t i = 0; i < count; ++i)
    found = values[i] > found ? values[i] : found;
  return found;
}

static burst_error *run_script(trial *trial, double deadline) {
  script *script = &trial->script;
  const burst_bytes_program program = {.name = "transport check",
                                       .hash = UINT64_C(0x636865636b),
                                       .num_ranks = script->num_ranks,
                                       .run = run,
                                       .context = script,
                                       .sent = trial->sent,
                                       .received = trial->received,
                                       .sent_bytes = trial->sent_bytes,
                                       .received_bytes = trial->received_bytes};
  const burst_run_config config = {.size = sizeof(config),
                                   .rank = script->rank,
                                   .device = trial->config->device,
                                   .transport = trial->config->transport,
                                   .deadline_seconds = deadline};
  int64_t began = burst_now();
  burst_error *error = NULL;
  for (int64_t kind = 1; kind < NUM_GROUPS && !error; ++kind) {
    burst_group group = group_of(script, kind);
    if (group.num_ranks < script->num_ranks)
      error = burst_transport_prepare(config.transport, &group, 1, deadline);
  }
  if (error)
    burst_transport_stop(config.transport, burst_error_message(error));
  else
    error = burst_bytes_run(&program, &config);
  trial->seconds = burst_seconds(burst_now() - began);
  return error;
}

static const char *what_of(int64_t what) {
  static const char *const names[] = {"messages", "mismatch", "deadline",
                                      "stop"};
  return names[what];
}

// Takes the error of a run, which had to fail with one of two codes.
static burst_error *expect(const trial *trial, burst_error *error,
                           burst_code code, burst_code other) {
  burst_code found = burst_error_code(error);
  burst_error *broken = NULL;
  if (!error)
    broken = BROKEN("transport check: %s: the run of rank %" PRId64
                    " succeeded, wanted error %d",
                    what_of(trial->config->what), trial->script.rank, code);
  else if (found != code && found != other)
    broken = BROKEN("transport check: %s: the run of rank %" PRId64
                    " failed with error %d, wanted %d: %s",
                    what_of(trial->config->what), trial->script.rank, found,
                    code, burst_error_message(error));
  burst_error_destroy(error);
  return broken;
}

// Of a rank that has no part in what fails: it may begin, or end, behind that.
static burst_error *expect_little(const trial *trial, burst_error *error) {
  return error ? expect(trial, error, BURST_PEER_STOPPED, BURST_PEER_STOPPED)
               : NULL;
}

static burst_error *expect_time(const trial *trial, double from, double to) {
  if (trial->seconds >= from && trial->seconds <= to)
    return NULL;
  return BROKEN("transport check: %s: the run of rank %" PRId64
                " took %.2f s, wanted %.2f to %.2f",
                what_of(trial->config->what), trial->script.rank,
                trial->seconds, from, to);
}

static burst_error *check_messages(trial *trial, double deadline) {
  burst_error *error = run_script(trial, deadline);
  return error ? error
               : compare(&trial->script, (uint64_t)trial->config->seed,
                         trial->received, !trial->is_gpu);
}

static burst_error *check_mismatch(trial *trial, double deadline) {
  trial->script.is_short = true;
  burst_error *error = run_script(trial, deadline);
  if (trial->script.rank > 1)
    return expect_little(trial, error);
  // The sender may be done before the receiver looks, or hear of it first.
  if (error || trial->script.rank == 1)
    error = expect(trial, error, BURST_MISMATCH, BURST_PEER_STOPPED);
  return error ? error : expect_time(trial, 0, told_seconds);
}

static burst_error *check_deadline(trial *trial, double deadline) {
  int64_t rank = trial->script.rank;
  trial->script.pause = rank == 0 ? pause_seconds : 0;
  burst_error *error = run_script(trial, rank == 1 ? short_deadline : deadline);
  if (rank > 1)
    return expect_little(trial, error);
  if (rank == 0) {
    error = expect(trial, error, BURST_PEER_STOPPED, BURST_DEADLINE_EXCEEDED);
    return error ? error : expect_time(trial, 0, pause_seconds + told_seconds);
  }
  error =
      expect(trial, error, BURST_DEADLINE_EXCEEDED, BURST_DEADLINE_EXCEEDED);
  if (!error)
    error =
        expect_time(trial, 0.9 * short_deadline, short_deadline + told_seconds);
  if (error || trial->is_gpu)
    return error;
  pause_for(pause_seconds);
  return untouched(&trial->script, trial->received);
}

static burst_error *check_stop(trial *trial, double deadline) {
  if (trial->script.rank == 0) {
    pause_for(short_deadline);
    burst_transport_stop(trial->config->transport, stop_reason);
  }
  burst_error *error = run_script(trial, deadline);
  burst_error *unexplained = NULL;
  if (error && !strstr(burst_error_message(error), stop_reason))
    unexplained =
        BROKEN("transport check: stop: the error of rank %" PRId64
               " lacks the reason \"%s\": %s",
               trial->script.rank, stop_reason, burst_error_message(error));
  error = expect(trial, error, BURST_PEER_STOPPED, BURST_PEER_STOPPED);
  if (!error)
    error = expect_time(trial, 0, short_deadline + told_seconds);
  if (!error)
    return unexplained;
  burst_error_destroy(unexplained);
  return error;
}

// As much on each rank, as tensors that are not sharded have.
static burst_error *fill_memory(trial *trial) {
  const script *script = &trial->script;
  int64_t sent = largest(script->sent, script->num_ranks),
          received = largest(script->received, script->num_ranks);
  trial->sent = malloc((size_t)sent);
  trial->received = malloc((size_t)received);
  if (!trial->sent || !trial->received)
    return burst_error_no_memory((size_t)(sent + received));
  trial->sent_bytes = sent;
  trial->received_bytes = received;
  memset(trial->received, BUFFER_FILL, (size_t)received);
  for (int64_t i = 0; i < sent; ++i)
    trial->sent[i] = byte_of((uint64_t)trial->config->seed, script->rank, i);
  return NULL;
}

static burst_error *check_config(const burst_check_config *config) {
  if (!config->transport || !config->device)
    return BROKEN("burst_transport_check: no %s",
                  config->transport ? "device" : "transport");
  if (config->what < BURST_CHECK_MESSAGES || config->what > BURST_CHECK_STOP)
    return BROKEN("burst_transport_check: what is %" PRId64 ", wanted 0 to %d",
                  config->what, BURST_CHECK_STOP);
  if (config->what != BURST_CHECK_MESSAGES && config->transport->num_ranks < 2)
    return BROKEN("burst_transport_check: %s of 1 rank, wanted 2 or more",
                  what_of(config->what));
  return burst_number_check("burst_transport_check: deadline_seconds",
                            config->deadline_seconds);
}

burst_error *burst_transport_check(const burst_check_config *given) {
  burst_error *(*const checks[])(trial *, double) = {
      check_messages, check_mismatch, check_deadline, check_stop};
  burst_check_config config;
  burst_error *error =
      burst_config_read("burst_check_config", &config, sizeof(config), given,
                        BURST_COVERS(burst_check_config, device));
  if (error)
    return error;
  BURST_CHECK(config.transport, BURST_KIND_TRANSPORT);
  BURST_CHECK(config.device, BURST_KIND_DEVICE);
  error = check_config(&config);
  if (error)
    return error;
  trial trial = {.config = &config,
                 .is_gpu = burst_device_cuda(config.device) != NULL};
  error = make_script(&config, &trial.script);
  if (!error)
    error = fill_memory(&trial);
  if (!error)
    error = checks[config.what](&trial, config.deadline_seconds > 0
                                            ? config.deadline_seconds
                                            : default_deadline);
  free(trial.sent);
  free(trial.received);
  free_script(&trial.script);
  return error;
}
