//===- World.c - Ranks that are processes ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/world/World.h"
#include "burst/internal/config.h"
#include "burst/internal/error.h"
#include "burst/internal/hash.h"
#include "runtime/src/base/Clock.h"
#include "runtime/src/base/Thread.h"
#include "runtime/src/world/Descriptors.h"
#include "runtime/src/world/Meet.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static const double default_timeout = 300, default_heartbeat = 1,
                    default_silence = 30, default_deadline = 600;

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

static burst_error *read_config(const burst_world_config *given,
                                burst_world_config *config) {
  burst_error *error = burst_config_read(
      "burst_world_config", config, sizeof(*config), given, sizeof(size_t));
  if (!error)
    error =
        burst_number_check("world: timeout_seconds", config->timeout_seconds);
  if (!error)
    error = burst_number_check("world: heartbeat_seconds",
                               config->heartbeat_seconds);
  if (!error)
    error =
        burst_number_check("world: silence_seconds", config->silence_seconds);
  if (error)
    return error;
  double heartbeat = config->heartbeat_seconds;
  if (config->timeout_seconds == 0)
    config->timeout_seconds = default_timeout;
  if (heartbeat == 0)
    heartbeat = default_heartbeat;
  if (config->silence_seconds == 0)
    config->silence_seconds =
        heartbeat * 10 > default_silence ? heartbeat * 10 : default_silence;
  if (config->silence_seconds < 2 * heartbeat)
    return burst_error_create(BURST_INVALID_ARGUMENT, "",
                              "world: silence_seconds: %g, wanted at least %g, "
                              "two heartbeats",
                              config->silence_seconds, 2 * heartbeat);
  config->heartbeat_seconds = heartbeat;
  return NULL;
}

static void close_one(int fd) {
  if (fd >= 0)
    close(fd);
}

static void free_member(burst_member *member) {
  close_one(member->fd);
  close_one(member->arrival.fd);
  close_one(member->probe.fd);
  free(member->shares[0].data);
  free(member->shares[1].data);
  free(member->payload);
  free(member->out);
}

static void free_world(burst_world *world) {
  for (int64_t i = 0; world->members && i < world->num_ranks; ++i)
    free_member(&world->members[i]);
  burst_callers_close(world);
  close_one(world->listener);
  close_one(world->wakes);
  close_one(world->alarm);
  while (burst_members_spare(world))
    ;
  pthread_cond_destroy(&world->changed);
  pthread_mutex_destroy(&world->mutex);
  pthread_mutex_destroy(&world->transport_mutex);
  free(world->members);
  free(world->addresses);
  free(world->polled);
  free(world->reason);
  burst_handle_free(world);
}

static void set_up(burst_world *world, const burst_world_config *config,
                   const burst_place *place) {
  world->handle.magic = BURST_MAGIC(BURST_KIND_WORLD);
  world->place = *place;
  world->rank = place->rank;
  world->num_ranks = place->num_ranks;
  world->timeout = burst_nanoseconds(config->timeout_seconds);
  world->heartbeat = burst_nanoseconds(config->heartbeat_seconds);
  world->silence = burst_nanoseconds(config->silence_seconds);
  world->culprit = -1;
  world->listener = world->wakes = world->alarm = -1;
  world->spares[0] = world->spares[1] = -1;
  pthread_mutex_init(&world->mutex, NULL);
  pthread_mutex_init(&world->transport_mutex, NULL);
  burst_cond_init(&world->changed);
}

static burst_error *open_descriptors(burst_world *world) {
  burst_descriptors_raise();
  world->wakes = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  world->alarm = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  for (int i = 0; i < 2; ++i)
    world->spares[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (world->wakes < 0 || world->alarm < 0 || world->spares[1] < 0)
    return burst_descriptors_error("an eventfd", world->rank, world->num_ranks);
  // Where there are too few, the spare ones serve to say so.
  if (world->num_ranks > 1 && !burst_descriptors_suffice(world->num_ranks + 8))
    while (burst_members_spare(world))
      world->is_short = true;
  return NULL;
}

static burst_error *make_world(const burst_world_config *config,
                               const burst_place *place, burst_world **made) {
  size_t count = (size_t)place->num_ranks;
  // Members and probes, the eventfd, the listener and callers.
  size_t most_polled = 2 * count + 2 + BURST_MOST_CALLERS;
  burst_world *world = calloc(1, sizeof(*world));
  if (!world)
    return burst_error_no_memory(sizeof(*world));
  *made = world;
  set_up(world, config, place);
  burst_error *error = open_descriptors(world);
  if (error)
    return error;
  world->members = calloc(count, sizeof(burst_member));
  world->addresses = calloc(count, sizeof(burst_address));
  world->polled = calloc(2 * most_polled, sizeof(struct pollfd));
  if (!world->members || !world->addresses || !world->polled)
    return burst_error_no_memory(count * sizeof(burst_member));
  for (size_t i = 0; i < count; ++i)
    world->members[i].fd = world->members[i].arrival.fd =
        world->members[i].probe.fd = -1;
  return NULL;
}

// The same on all ranks of a machine, and on no other.
static uint64_t number_of_machine(void) {
  char text[256] = "";
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
  size_t length = file ? fread(text, 1, 64, file) : 0;
  if (file)
    fclose(file);
  gethostname(text + length, sizeof(text) - length - 1);
  return burst_hash(BURST_HASH_BEGIN, text, strlen(text));
}

static burst_error *find_local_rank(burst_world *world) {
  uint64_t mine = number_of_machine();
  size_t bytes = (size_t)world->num_ranks * sizeof(mine);
  uint64_t *all = malloc(bytes);
  if (!all)
    return burst_error_no_memory(bytes);
  burst_error *error = burst_world_gather(world, &mine, sizeof(mine), all,
                                          burst_seconds(world->timeout));
  for (int64_t i = 0; i < world->rank && !error; ++i)
    world->local_rank += all[i] == mine;
  if (world->place.local_rank >= 0)
    world->local_rank = world->place.local_rank;
  free(all);
  return error;
}

static burst_error *begin(burst_world *world) {
  burst_error *error = burst_meet(world);
  if (!error)
    error = find_local_rank(world);
  if (error) {
    burst_meet_latecomers(world);
    return error;
  }
  pthread_mutex_lock(&world->mutex);
  world->complete = true;
  pthread_mutex_unlock(&world->mutex);
  return NULL;
}

static burst_error *make_with_thread(const burst_world_config *config,
                                     const burst_place *place,
                                     burst_world **made) {
  burst_error *error = make_world(config, place, made);
  if (!error)
    error = burst_thread_create("a world", &(*made)->thread,
                                burst_members_watch, *made);
  if (error && *made) {
    free_world(*made);
    *made = NULL;
  }
  return error;
}

burst_error *burst_world_create(const burst_world_config *given,
                                burst_world **world) {
  BURST_REQUIRE(world);
  burst_world_config config;
  burst_place place;
  *world = NULL;
  burst_error *error = read_config(given, &config);
  if (!error)
    error = burst_place_find(&config, &place);
  if (!error)
    error = make_with_thread(&config, &place, world);
  if (error)
    return error;
  error = begin(*world);
  if (error) {
    burst_world_destroy(*world);
    *world = NULL;
  }
  return error;
}

void burst_world_destroy(burst_world *world) {
  BURST_CHECK(world, BURST_KIND_WORLD);
  if (!world)
    return;
  burst_handle_end(&world->handle);
  pthread_mutex_lock(&world->mutex);
  world->ending = true;
  burst_members_tell_goodbye(world);
  pthread_mutex_unlock(&world->mutex);
  pthread_join(world->thread, NULL);
  free_world(world);
}

int64_t burst_world_rank(const burst_world *world) {
  BURST_CHECK(world, BURST_KIND_WORLD);
  return world ? world->rank : 0;
}

int64_t burst_world_num_ranks(const burst_world *world) {
  BURST_CHECK(world, BURST_KIND_WORLD);
  return world ? world->num_ranks : 0;
}

int64_t burst_world_local_rank(const burst_world *world) {
  BURST_CHECK(world, BURST_KIND_WORLD);
  return world ? world->local_rank : 0;
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

#define LOCATION(world, text)                                                  \
  char text[32];                                                               \
  snprintf(text, sizeof(text), "rank %" PRId64, (world)->rank)

// With the mutex held.
static burst_error *failure_of(const burst_world *world) {
  LOCATION(world, location);
  return world->culprit < 0 ? NULL
                            : burst_error_create(world->code, location, "%s",
                                                 burst_members_reason(world));
}

void burst_world_fail(burst_world *world, int64_t culprit, burst_code code,
                      const char *sentence) {
  int64_t until = burst_now() + INT64_C(1000000000);
  pthread_mutex_lock(&world->mutex);
  burst_members_fail(world, culprit, code, sentence);
  while (!world->told && burst_now() < until)
    burst_cond_wait_until(&world->changed, &world->mutex, until);
  pthread_mutex_unlock(&world->mutex);
}

burst_error *burst_world_share(burst_world *world, burst_error *error) {
  if (error) {
    size_t location = strlen(burst_error_location(error));
    burst_world_fail(world, world->rank, burst_error_code(error),
                     burst_error_message(error) +
                         (location ? location + 2 : 0));
    burst_error_destroy(error);
  }
  pthread_mutex_lock(&world->mutex);
  error = failure_of(world);
  pthread_mutex_unlock(&world->mutex);
  return error;
}

void burst_world_stop(burst_world *world, const char *reason) {
  char sentence[4096];
  snprintf(sentence, sizeof(sentence), "rank %" PRId64 " stopped: %s",
           world->rank, reason);
  burst_world_fail(world, world->rank, BURST_PEER_STOPPED, sentence);
}

const char *burst_world_failure(burst_world *world, burst_code *code) {
  pthread_mutex_lock(&world->mutex);
  const char *reason = world->culprit < 0 ? NULL : burst_members_reason(world);
  *code = world->code;
  pthread_mutex_unlock(&world->mutex);
  return reason;
}

bool burst_world_question(burst_world *world, int64_t peer) {
  pthread_mutex_lock(&world->mutex);
  burst_member *member = &world->members[peer];
  bool asks = member->fd >= 0 && member->probe.fd < 0; // or it was asked
  if (asks && !member->left && !world->ending && world->culprit < 0) {
    burst_probe_begin(world, peer);
    burst_members_wake(world);
  }
  bool left = member->left;
  pthread_mutex_unlock(&world->mutex);
  return !left;
}

burst_error *burst_world_attach(burst_world *world,
                                void (*failed)(void *context), void *context) {
  pthread_mutex_lock(&world->mutex);
  burst_error *error = failure_of(world);
  if (!error && world->attached)
    error = burst_error_create(BURST_INVALID_ARGUMENT, "",
                               "world: it has a transport, wanted none");
  world->attached |= !error;
  pthread_mutex_unlock(&world->mutex);
  if (error)
    return error;
  pthread_mutex_lock(&world->transport_mutex);
  world->transport_failed = failed;
  world->transport = context;
  pthread_mutex_unlock(&world->transport_mutex);
  pthread_mutex_lock(&world->mutex);
  world->told = false; // also of a failure in between
  pthread_mutex_unlock(&world->mutex);
  return NULL;
}

void burst_world_detach(burst_world *world) {
  pthread_mutex_lock(&world->transport_mutex);
  world->transport_failed = NULL;
  pthread_mutex_unlock(&world->transport_mutex);
  pthread_mutex_lock(&world->mutex);
  world->attached = false;
  pthread_mutex_unlock(&world->mutex);
}

burst_error *burst_world_connect(burst_world *world, int *fds) {
  burst_error *error = burst_meet_for_data(world, fds);
  // Who is still connecting hears nothing of another transport.
  if (!error)
    error = burst_world_barrier(world, burst_seconds(world->timeout));
  for (int64_t i = 0; i < world->num_ranks && error; ++i) {
    close_one(fds[i]);
    fds[i] = -1;
  }
  return error;
}

//===----------------------------------------------------------------------===//
// Who does what
//===----------------------------------------------------------------------===//

void burst_world_note(burst_world *world, burst_activity activity, int64_t hop,
                      int64_t peer) {
  pthread_mutex_lock(&world->mutex);
  burst_pulse *mine = &world->members[world->rank].pulse;
  mine->activity = activity;
  mine->hop = hop;
  mine->peer = peer;
  pthread_mutex_unlock(&world->mutex);
}

static bool was_seen(const int64_t *seen, int count, int64_t rank) {
  for (int i = 0; i < count; ++i)
    if (seen[i] == rank)
      return true;
  return false;
}

void burst_world_explain(burst_world *world, int64_t peer, char *text,
                         size_t bytes) {
  enum { MOST = 64 };
  int64_t seen[MOST] = {world->rank};
  int count = 1;
  text[0] = 0;
  pthread_mutex_lock(&world->mutex);
  while (count < MOST && !was_seen(seen, count, peer) &&
         world->members[peer].pulse.activity == BURST_WAITING) {
    seen[count++] = peer;
    peer = world->members[peer].pulse.peer;
  }
  const burst_member *last = &world->members[peer];
  if (count == MOST || was_seen(seen, count, peer)) {
    if (peer != world->rank)
      snprintf(text, bytes, "; rank %" PRId64 " waits in a circle", peer);
  } else if (last->left) {
    snprintf(text, bytes, "; rank %" PRId64 " has left", peer);
  } else if (last->pulse.activity == BURST_RUNNING) {
    snprintf(text, bytes,
             "; rank %" PRId64 " computes, its last hop was %" PRId64, peer,
             last->pulse.hop);
  } else {
    snprintf(text, bytes, "; rank %" PRId64 " is in no run", peer);
  }
  pthread_mutex_unlock(&world->mutex);
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

static burst_error *late(const burst_world *world, double seconds,
                         int64_t missing, const char *what) {
  LOCATION(world, location);
  return burst_error_create(BURST_DEADLINE_EXCEEDED, location,
                            "world: waited %.1f s for rank %" PRId64 " to %s",
                            seconds, missing, what);
}

static burst_error *gone(const burst_world *world, int64_t missing,
                         const char *what) {
  LOCATION(world, location);
  return burst_error_create(BURST_PEER_STOPPED, location,
                            "world: rank %" PRId64 " has left, wanted it to %s",
                            missing, what);
}

// The first rank that is not where this one is with its runs, or -1. A rank
// that is further has found that its plan is that of this one.
static int64_t find_behind(burst_world *world) {
  const burst_pulse *mine = &world->members[world->rank].pulse;
  int64_t behind = -1;
  for (int64_t i = 0; i < world->num_ranks; ++i) {
    const burst_pulse *pulse = &world->members[i].pulse;
    if (pulse->run == mine->run && pulse->plan != mine->plan) {
      char sentence[160];
      snprintf(sentence, sizeof(sentence),
               "rank %" PRId64 " runs plan %016" PRIx64 ", rank %" PRId64
               " plan %016" PRIx64,
               i, pulse->plan, world->rank, mine->plan);
      burst_members_fail(world, i, BURST_MISMATCH, sentence);
    }
    if (pulse->run < mine->run && behind < 0)
      behind = i;
  }
  return behind;
}

static burst_error *agree(burst_world *world, double seconds) {
  int64_t deadline = burst_now() + burst_nanoseconds(seconds);
  for (;;) {
    int64_t behind = find_behind(world);
    burst_error *error = failure_of(world);
    if (error || behind < 0)
      return error;
    if (world->members[behind].left)
      return gone(world, behind, "begin a run");
    if (burst_now() >= deadline)
      return late(world, seconds, behind, "begin a run");
    burst_cond_wait_until(&world->changed, &world->mutex, deadline);
  }
}

burst_error *burst_world_begin_run(burst_world *world, uint64_t plan,
                                   double seconds) {
  pthread_mutex_lock(&world->mutex);
  burst_pulse *mine = &world->members[world->rank].pulse;
  bool changed = mine->plan != plan || mine->run == 0;
  *mine = (burst_pulse){BURST_RUNNING, 0, 0, mine->run + 1, plan};
  burst_error *error = failure_of(world);
  if (!error && changed) {
    burst_members_tell_pulse(world);
    error = agree(world, seconds);
  }
  pthread_mutex_unlock(&world->mutex);
  return error;
}

void burst_world_end_run(burst_world *world) {
  pthread_mutex_lock(&world->mutex);
  world->members[world->rank].pulse.activity = BURST_IDLE;
  pthread_mutex_unlock(&world->mutex);
}

//===----------------------------------------------------------------------===//
// Gathering
//===----------------------------------------------------------------------===//

// Takes the shares of this gathering that have come. The first rank whose share
// is missing, or -1.
static int64_t take_shares(burst_world *world, int64_t number, size_t bytes,
                           char *all, burst_error **error) {
  int64_t missing = -1;
  for (int64_t i = 0; i < world->num_ranks && !*error; ++i) {
    burst_share *share = &world->members[i].shares[number % 2];
    if (i == world->rank || (share->number == number && !share->data))
      continue;
    if (share->number != number) {
      if (missing < 0)
        missing = i;
      continue;
    }
    if (share->bytes != bytes) {
      LOCATION(world, location);
      *error = burst_error_create(BURST_MISMATCH, location,
                                  "world: rank %" PRId64
                                  " gathers %zu bytes, wanted %zu",
                                  i, share->bytes, bytes);
      return i;
    }
    if (bytes > 0)
      memcpy(all + (size_t)i * bytes, share->data, bytes);
    free(share->data);
    share->data = NULL;
  }
  return missing;
}

static burst_error *gather(burst_world *world, size_t bytes, char *all,
                           double seconds) {
  int64_t number = world->gatherings;
  int64_t deadline = burst_now() + burst_nanoseconds(seconds);
  for (;;) {
    burst_error *error = NULL;
    int64_t missing = take_shares(world, number, bytes, all, &error);
    if (!error && missing >= 0)
      error = failure_of(world);
    if (error || missing < 0)
      return error;
    if (world->members[missing].left)
      return gone(world, missing, "gather");
    if (burst_now() >= deadline)
      return late(world, seconds, missing, "gather");
    burst_cond_wait_until(&world->changed, &world->mutex, deadline);
  }
}

burst_error *burst_world_gather(burst_world *world, const void *mine,
                                size_t bytes, void *all,
                                double deadline_seconds) {
  BURST_REQUIRE_HANDLE(world, BURST_KIND_WORLD);
  burst_error *error = burst_number_check("burst_world_gather: "
                                          "deadline_seconds",
                                          deadline_seconds);
  if (!error && bytes > BURST_MOST_GATHERED)
    error = burst_error_create(BURST_INVALID_ARGUMENT, "",
                               "burst_world_gather: %zu bytes, wanted at most "
                               "%d",
                               bytes, BURST_MOST_GATHERED);
  if (error)
    return error;
  if (bytes > 0) {
    BURST_REQUIRE(mine);
    BURST_REQUIRE(all);
  }
  if (deadline_seconds == 0)
    deadline_seconds = default_deadline;
  pthread_mutex_lock(&world->mutex);
  // The share is read before it is written; `mine` may be its place in `all`.
  burst_share share = {++world->gatherings, bytes, (char *)(uintptr_t)mine};
  burst_members_tell_gathered(world, &share);
  if (bytes > 0)
    memmove((char *)all + (size_t)world->rank * bytes, mine, bytes);
  error = gather(world, bytes, all, deadline_seconds);
  // Ranks no longer agree on which gathering is the next.
  if (error && burst_error_code(error) != BURST_PEER_STOPPED)
    burst_members_fail(world, world->rank, burst_error_code(error),
                       burst_error_message(error));
  pthread_mutex_unlock(&world->mutex);
  return error;
}

burst_error *burst_world_barrier(burst_world *world, double deadline_seconds) {
  BURST_REQUIRE_HANDLE(world, BURST_KIND_WORLD);
  char nothing = 0;
  return burst_world_gather(world, &nothing, 0, &nothing, deadline_seconds);
}
