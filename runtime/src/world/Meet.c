//===- Meet.c - How the processes of a world connect ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/world/Meet.h"
#include "burst/internal/error.h"
#include "runtime/src/base/Clock.h"
#include "runtime/src/world/Descriptors.h"
#include "runtime/src/world/Greet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static const int64_t second = INT64_C(1000000000);

#define LOCATION(world, text)                                                  \
  char text[32];                                                               \
  snprintf(text, sizeof(text), "rank %" PRId64, (world)->rank)

//===----------------------------------------------------------------------===//
// Where ranks are
//===----------------------------------------------------------------------===//

static burst_wire_address pack(const burst_address *address) {
  burst_wire_address packed = {.port = (uint16_t)burst_address_port(address)};
  bool six = address->storage.ss_family == AF_INET6;
  packed.family = six ? 6 : 4;
  if (six)
    memcpy(packed.bytes,
           &((const struct sockaddr_in6 *)&address->storage)->sin6_addr, 16);
  else
    memcpy(packed.bytes,
           &((const struct sockaddr_in *)&address->storage)->sin_addr, 4);
  return packed;
}

static burst_address unpack(const burst_wire_address *packed) {
  burst_address address;
  memset(&address, 0, sizeof(address));
  if (packed->family == 6) {
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address.storage;
    six->sin6_family = AF_INET6;
    memcpy(&six->sin6_addr, packed->bytes, 16);
    address.length = sizeof(*six);
  } else {
    struct sockaddr_in *four = (struct sockaddr_in *)&address.storage;
    four->sin_family = AF_INET;
    memcpy(&four->sin_addr, packed->bytes, 4);
    address.length = sizeof(*four);
  }
  burst_address_set_port(&address, packed->port);
  return address;
}

static burst_error *tell_roster(burst_world *world) {
  size_t count = (size_t)world->num_ranks;
  burst_wire_address *roster = calloc(count, sizeof(*roster));
  if (!roster)
    return burst_error_no_memory(count * sizeof(*roster));
  pthread_mutex_lock(&world->mutex);
  for (size_t i = 0; i < count; ++i)
    roster[i] = pack(&world->addresses[i]);
  burst_members_tell_roster(world, roster);
  pthread_mutex_unlock(&world->mutex);
  free(roster);
  return NULL;
}

// That of rank 0 is known better here.
bool burst_meet_take_roster(burst_world *world, const char *payload) {
  if (world->has_roster)
    return false;
  for (int64_t i = 1; i < world->num_ranks; ++i) {
    burst_wire_address packed;
    memcpy(&packed, payload + (size_t)i * sizeof(packed), sizeof(packed));
    world->addresses[i] = unpack(&packed);
  }
  world->has_roster = true;
  return true;
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

typedef bool (*condition)(const burst_world *world);

// Until it holds or the world has failed; false where that takes too long.
static bool await(burst_world *world, condition holds, int64_t deadline) {
  pthread_mutex_lock(&world->mutex);
  while (!holds(world) && world->culprit < 0 && burst_now() < deadline)
    burst_cond_wait_until(&world->changed, &world->mutex, deadline);
  bool ended = holds(world) || world->culprit >= 0;
  pthread_mutex_unlock(&world->mutex);
  return ended;
}

static bool has_roster(const burst_world *world) { return world->has_roster; }

static int64_t first_missing(const burst_world *world) {
  int64_t rank = world->rank + 1;
  while (rank < world->num_ranks && world->members[rank].came)
    ++rank;
  return rank;
}

static bool all_came(const burst_world *world) {
  return first_missing(world) == world->num_ranks;
}

static bool is_current(const burst_world *world, int64_t rank) {
  const burst_arrival *arrival = &world->members[rank].arrival;
  return arrival->fd >= 0 && arrival->generation == world->generation;
}

static int64_t first_without_data(const burst_world *world) {
  int64_t rank = world->rank + 1;
  while (rank < world->num_ranks && is_current(world, rank))
    ++rank;
  return rank;
}

static bool all_connected(const burst_world *world) {
  return first_without_data(world) == world->num_ranks;
}

static bool has_failed(burst_world *world) {
  pthread_mutex_lock(&world->mutex);
  bool failed = world->culprit >= 0;
  pthread_mutex_unlock(&world->mutex);
  return failed;
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

static burst_error *late(burst_world *world, int64_t began, int64_t missing,
                         const char *what) {
  LOCATION(world, location);
  return burst_error_create(BURST_DEADLINE_EXCEEDED, location,
                            "world: waited %.1f s for rank %" PRId64 " to %s",
                            burst_seconds(burst_now() - began), missing, what);
}

// "1, 3, ...".
static int64_t list_missing(const burst_world *world, char *text,
                            size_t bytes) {
  size_t length = 0;
  int64_t missing = 0;
  for (int64_t i = 1; i < world->num_ranks; ++i) {
    if (world->members[i].came)
      continue;
    if (++missing && length < bytes - 32)
      length += (size_t)snprintf(text + length, bytes - length, "%s%" PRId64,
                                 length ? ", " : "", i);
  }
  return missing;
}

static burst_error *nobody_came(burst_world *world, int64_t began) {
  LOCATION(world, location);
  char ranks[128] = "", ignored[384] = "";
  burst_address address = burst_socket_local(world->listener);
  pthread_mutex_lock(&world->mutex);
  int64_t missing = list_missing(world, ranks, sizeof(ranks));
  if (world->callers.ignored)
    snprintf(ignored, sizeof(ignored),
             " (%" PRId64 " connections were ignored, the last from %s)",
             world->callers.ignored, world->callers.last);
  pthread_mutex_unlock(&world->mutex);
  return burst_error_create(
      BURST_DEADLINE_EXCEEDED, location,
      "world: waited %.1f s at %s: %" PRId64 " ranks have not come: %s%s",
      burst_seconds(burst_now() - began), burst_address_print(&address).text,
      missing, ranks, ignored);
}

//===----------------------------------------------------------------------===//
// Meeting
//===----------------------------------------------------------------------===//

static burst_error *check_descriptors(const burst_world *world) {
  LOCATION(world, location);
  return world->is_short ? burst_error_create(BURST_SYSTEM, location, "%s",
                                              burst_descriptors_explain(
                                                  world->rank, world->num_ranks)
                                                  .text)
                         : NULL;
}

// A connection of this machine, such as one that another rank tries, may have
// the port for a moment.
static burst_error *listen_soon(burst_world *world, int *fd) {
  const burst_address *address = &world->addresses[0];
  int64_t deadline = burst_now() + second;
  int failure = burst_socket_listen(address, fd);
  while (failure == EADDRINUSE && burst_now() < deadline) {
    burst_wait rest = {burst_now() + second / 100, -1};
    burst_socket_await(-1, 0, &rest);
    failure = burst_socket_listen(address, fd);
  }
  if (burst_greet_spares(world, failure))
    failure = burst_socket_listen(address, fd);
  return failure ? burst_socket_cannot_listen(address, failure) : NULL;
}

static burst_error *open_listener(burst_world *world) {
  int fd = -1;
  burst_error *error =
      burst_token_find(&world->place, &world->addresses[0], &world->token);
  if (!error)
    error = listen_soon(world, &fd);
  if (error)
    return error;
  pthread_mutex_lock(&world->mutex);
  if (getrandom(&world->number, sizeof(world->number), 0) < 0)
    world->number = (uint64_t)burst_now();
  world->number |= 1; // not 0
  world->listener = fd;
  world->has_roster = true;
  pthread_mutex_unlock(&world->mutex);
  burst_members_wake(world);
  return NULL;
}

static burst_error *gather_ranks(burst_world *world) {
  int64_t began = burst_now();
  // Where it has too few descriptors it is known to all who come, before they
  // take some.
  if (world->is_short)
    burst_error_destroy(burst_world_share(world, check_descriptors(world)));
  burst_error *error = open_listener(world);
  if (!error)
    error = check_descriptors(world); // it may have come since
  if (error)
    return error;
  return await(world, all_came, began + world->timeout)
             ? tell_roster(world)
             : nobody_came(world, began);
}

// Less than others wait for this rank, so that it says first whom it cannot
// reach.
static int64_t time_to_connect(const burst_world *world) {
  int64_t half = world->timeout / 2;
  return burst_now() + (half < 30 * second ? half : 30 * second);
}

static burst_error *greet_lower_ranks(burst_world *world) {
  for (int64_t i = 1; i < world->rank; ++i) {
    int fd;
    burst_error *error =
        burst_greet(world, i, BURST_FOR_MEMBER, time_to_connect(world), &fd);
    if (error)
      return error;
    pthread_mutex_lock(&world->mutex);
    burst_members_adopt(world, i, fd);
    pthread_mutex_unlock(&world->mutex);
  }
  return NULL;
}

static burst_error *await_higher_ranks(burst_world *world) {
  int64_t began = burst_now();
  if (await(world, all_came, began + world->timeout))
    return NULL;
  pthread_mutex_lock(&world->mutex);
  int64_t missing = first_missing(world);
  pthread_mutex_unlock(&world->mutex);
  return late(world, began, missing, "connect to this one");
}

static burst_error *join_ranks(burst_world *world) {
  burst_error *error = burst_greet_rank_0(world, burst_now() + world->timeout);
  if (!error)
    error = check_descriptors(world);
  if (error)
    return error;
  // Rank 0 listened before, and has a deadline of its own.
  int64_t began = burst_now();
  if (!await(world, has_roster, began + world->timeout + 2 * second))
    return late(world, began, 0, "say where the others are");
  if (has_failed(world))
    return NULL;
  error = greet_lower_ranks(world);
  return error ? error : await_higher_ranks(world);
}

burst_error *burst_meet(burst_world *world) {
  const burst_place *place = &world->place;
  if (place->num_ranks == 1)
    return NULL;
  burst_error *error =
      burst_address_resolve(place->host, place->port, &world->addresses[0]);
  if (!error)
    error = world->rank == 0 ? gather_ranks(world) : join_ranks(world);
  return burst_world_share(world, error);
}

static bool all_told(const burst_world *world) {
  int64_t told = world->callers.refused;
  for (int64_t i = 1; i < world->num_ranks; ++i)
    told += world->members[i].came;
  return told >= world->num_ranks - 1;
}

void burst_meet_latecomers(burst_world *world) {
  int64_t most = 10 * second;
  int64_t deadline =
      burst_now() + (world->timeout < most ? world->timeout : most);
  pthread_mutex_lock(&world->mutex);
  while (world->rank == 0 && world->listener >= 0 &&
         world->code != BURST_DEADLINE_EXCEEDED && !all_told(world) &&
         burst_now() < deadline)
    burst_cond_wait_until(&world->changed, &world->mutex, deadline);
  pthread_mutex_unlock(&world->mutex);
}

//===----------------------------------------------------------------------===//
// Connections for data
//===----------------------------------------------------------------------===//

static burst_error *greet_for_data(burst_world *world, int *fds) {
  burst_error *error = NULL;
  for (int64_t i = 0; i < world->rank && !error; ++i)
    error =
        burst_greet(world, i, BURST_FOR_DATA, time_to_connect(world), &fds[i]);
  return error;
}

static burst_error *take_arrivals(burst_world *world, int *fds) {
  int64_t began = burst_now();
  await(world, all_connected, began + world->timeout);
  pthread_mutex_lock(&world->mutex);
  int64_t missing = first_without_data(world);
  for (int64_t i = world->rank + 1; i < missing; ++i) {
    fds[i] = world->members[i].arrival.fd;
    world->members[i].arrival.fd = -1;
  }
  bool failed = world->culprit >= 0;
  pthread_mutex_unlock(&world->mutex);
  return failed || missing == world->num_ranks
             ? NULL
             : late(world, began, missing, "connect to this one for data");
}

burst_error *burst_meet_for_data(burst_world *world, int *fds) {
  for (int64_t i = 0; i < world->num_ranks; ++i)
    fds[i] = -1;
  pthread_mutex_lock(&world->mutex);
  ++world->generation;
  pthread_mutex_unlock(&world->mutex);
  if (world->num_ranks > 1)
    world->is_short = !burst_descriptors_suffice(world->num_ranks + 4);
  burst_error *error = check_descriptors(world);
  if (!error)
    error = greet_for_data(world, fds);
  if (!error)
    error = take_arrivals(world, fds);
  return burst_world_share(world, error);
}
