//===- Callers.c - Who connects to a rank ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/base/Clock.h"
#include "runtime/src/world/Descriptors.h"
#include "runtime/src/world/Members.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// What is written to a new connection fits into its buffer.
static const burst_wait at_once = {0, -1};
// Ranks speak as soon as they are connected.
static const int64_t patience = INT64_C(500000000);

//===----------------------------------------------------------------------===//
// Strangers
//===----------------------------------------------------------------------===//

static void remove_caller(burst_callers *callers, size_t index) {
  --callers->count;
  callers->crowded = false;
  memmove(&callers->list[index], &callers->list[index + 1],
          (callers->count - index) * sizeof(burst_caller));
}

static bool is_from(const char *line, const char *host, const char *why) {
  size_t length = strlen(host);
  return strncmp(line, host, length) == 0 && line[length] == ':' &&
         strstr(line, why) != NULL;
}

// One who calls again and again is told of once.
static void log_stranger(burst_world *world, int fd, const char *why) {
  burst_callers *callers = &world->callers;
  burst_address address = burst_socket_remote(fd);
  burst_address_text text = burst_address_print(&address), host = text;
  *strrchr(host.text, ':') = 0;
  bool again = is_from(callers->last, host.text, why);
  ++callers->ignored;
  snprintf(callers->last, sizeof(callers->last), "%s, which %s", text.text,
           why);
  if (!again)
    fprintf(stderr, "burst: rank %" PRId64 " ignores a connection from %s\n",
            world->rank, callers->last);
}

static void ignore(burst_world *world, size_t index, const char *why) {
  int fd = world->callers.list[index].fd;
  log_stranger(world, fd, why);
  close(fd);
  remove_caller(&world->callers, index);
}

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

static void answer(const burst_world *world, int fd, uint16_t kind,
                   const char *reason) {
  burst_answer message;
  size_t length = strnlen(reason, BURST_MOST_REASON);
  memcpy(message.token, world->token.answer, sizeof(message.token));
  message.header = burst_header_of(kind, sizeof(message.world) + length);
  message.world = world->number;
  if (!burst_socket_send(fd, &message, sizeof(message), &at_once) && length > 0)
    burst_socket_send(fd, reason, length, &at_once);
}

static void refuse(burst_world *world, size_t index, const char *reason) {
  int fd = world->callers.list[index].fd;
  answer(world, fd, BURST_REFUSED, reason);
  close(fd);
  remove_caller(&world->callers, index);
}

static int welcome(burst_world *world, size_t index) {
  int fd = world->callers.list[index].fd;
  answer(world, fd, BURST_WELCOME, "");
  remove_caller(&world->callers, index);
  return fd;
}

// A process of this job that cannot belong to it.
static void refuse_wrong_start(burst_world *world, size_t index,
                               const char *what) {
  char sentence[256];
  int fd = world->callers.list[index].fd;
  burst_address address = burst_socket_remote(fd);
  snprintf(sentence, sizeof(sentence), "world: a process at %s %s",
           burst_address_print(&address).text, what);
  if (world->complete)
    log_stranger(world, fd, what);
  else
    burst_members_fail(world, world->rank, BURST_MISMATCH, sentence);
  refuse(world, index, sentence);
}

//===----------------------------------------------------------------------===//
// Who has said hello
//===----------------------------------------------------------------------===//

static void take_member(burst_world *world, size_t index,
                        const burst_hello *hello) {
  char text[160];
  burst_member *member = &world->members[hello->rank];
  if (member->came) {
    snprintf(text, sizeof(text),
             "says that it is rank %" PRId64 ", as another one at %s does",
             hello->rank, burst_address_print(&member->from).text);
    refuse_wrong_start(world, index, text);
    return;
  }
  member->from = burst_socket_remote(world->callers.list[index].fd);
  world->addresses[hello->rank] = member->from;
  burst_address_set_port(&world->addresses[hello->rank], hello->port);
  burst_members_adopt(world, hello->rank, welcome(world, index));
}

// It is kept until this rank makes that transport.
static void take_data(burst_world *world, size_t index,
                      const burst_hello *hello) {
  burst_arrival *arrival = &world->members[hello->rank].arrival;
  if (arrival->fd >= 0)
    close(arrival->fd);
  *arrival = (burst_arrival){welcome(world, index), hello->generation};
}

static void take_probe(burst_world *world, size_t index,
                       const burst_hello *hello) {
  burst_members_fail_connection(world, hello->rank, "broke");
  close(welcome(world, index));
}

static void take_hello(burst_world *world, size_t index,
                       const burst_hello *hello) {
  bool first = world->rank == 0 && hello->purpose == BURST_FOR_MEMBER;
  int64_t lowest = hello->purpose == BURST_FOR_PROBE ? 0 : world->rank + 1;
  if (hello->world != (first ? 0 : world->number)) {
    ignore(world, index, "is of another start of this job");
  } else if (hello->rank < lowest || hello->rank >= world->num_ranks ||
             hello->rank == world->rank) {
    char text[128];
    snprintf(text, sizeof(text),
             "says that it is rank %" PRId64
             ", wanted one of the ranks %" PRId64 " to %" PRId64,
             hello->rank, lowest, world->num_ranks - 1);
    refuse_wrong_start(world, index, text);
  } else if (world->culprit >= 0) {
    ++world->callers.refused;
    refuse(world, index, burst_members_reason(world));
  } else if (hello->purpose == BURST_FOR_MEMBER) {
    take_member(world, index, hello);
  } else if (hello->purpose == BURST_FOR_DATA) {
    take_data(world, index, hello);
  } else {
    take_probe(world, index, hello);
  }
}

static void take_message(burst_world *world, size_t index,
                         const burst_hello_message *message) {
  const burst_header *header = &message->header;
  if (header->magic == BURST_WIRE_MAGIC &&
      header->version != BURST_WIRE_VERSION) {
    char text[64];
    snprintf(text, sizeof(text), "speaks version %d of burst, wanted %d",
             header->version, BURST_WIRE_VERSION);
    ++world->callers.refused;
    refuse_wrong_start(world, index, text);
    return;
  }
  if (header->magic != BURST_WIRE_MAGIC || header->kind != BURST_HELLO ||
      header->bytes != sizeof(burst_hello))
    ignore(world, index, "does not say hello");
  else if (world->callers.list[index].got == sizeof(*message))
    take_hello(world, index, &message->hello);
}

// Reads what a caller says; it may be gone from the list afterwards.
static void listen_to(burst_world *world, size_t index) {
  burst_caller *caller = &world->callers.list[index];
  burst_hello_message message;
  ssize_t got = recv(caller->fd, caller->bytes + caller->got,
                     sizeof(caller->bytes) - caller->got, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (got <= 0) {
    ignore(world, index, "hung up");
    return;
  }
  caller->got += (size_t)got;
  if (caller->got < sizeof(message.token))
    return;
  memcpy(&message, caller->bytes, sizeof(message));
  if (!burst_token_equal(message.token, world->token.hello))
    ignore(world, index,
           "does not have the token of this job: another BURST_TOKEN, address "
           "of rank 0 or number of ranks");
  else if (caller->got >= offsetof(burst_hello_message, hello))
    take_message(world, index, &message);
}

//===----------------------------------------------------------------------===//
// Who calls
//===----------------------------------------------------------------------===//

// Where descriptors run out, those who have not yet spoken are waited for. With
// those descriptors that were kept for this case all others are accepted, one
// after the other, and refused.
static bool make_room(burst_world *world) {
  burst_callers *callers = &world->callers;
  callers->crowded = callers->count > 0;
  if (callers->crowded)
    return false;
  burst_members_fail(
      world, world->rank, BURST_SYSTEM,
      burst_descriptors_explain(world->rank, world->num_ranks).text);
  callers->deaf = !burst_members_spare(world);
  return !callers->deaf;
}

// Whether to go on.
static bool take_failure(burst_world *world, int failure) {
  if (failure == EMFILE || failure == ENFILE)
    return make_room(world);
  if (failure == ENOMEM || failure == ENOBUFS) { // for a while, or for good
    burst_members_fail_rank(world, world->rank, "ran out of memory");
    world->callers.deaf = true;
  }
  return failure == EINTR || failure == ECONNABORTED;
}

static void accept_caller(burst_world *world, int fd) {
  burst_callers *callers = &world->callers;
  callers->list[callers->count++] =
      (burst_caller){.fd = fd, .since = burst_now()};
  callers->crowded = callers->count == BURST_MOST_CALLERS;
  listen_to(world, callers->count - 1); // it may have spoken
}

static bool accepts(const burst_world *world) {
  return !world->callers.deaf && !world->callers.crowded && !world->ending;
}

static void accept_callers(burst_world *world) {
  bool goes_on = true;
  while (goes_on && accepts(world)) {
    int fd = burst_socket_accept(world->listener);
    if (fd >= 0)
      accept_caller(world, fd);
    else
      goes_on = take_failure(world, errno);
  }
}

static void ignore_silent_callers(burst_world *world) {
  burst_callers *callers = &world->callers;
  while (callers->crowded && burst_now() - callers->list[0].since >= patience)
    ignore(world, 0, "said nothing");
}

size_t burst_callers_poll(const burst_world *world, struct pollfd *polled) {
  const burst_callers *callers = &world->callers;
  polled[0] = (struct pollfd){accepts(world) ? world->listener : -1, POLLIN, 0};
  for (size_t i = 0; i < callers->count; ++i)
    polled[1 + i] = (struct pollfd){callers->list[i].fd, POLLIN, 0};
  return 1 + callers->count;
}

void burst_callers_serve(burst_world *world, const struct pollfd *polled) {
  // From the last one, because callers may be removed.
  for (size_t i = world->callers.count; i-- > 0;)
    if (polled[1 + i].revents)
      listen_to(world, i);
  ignore_silent_callers(world);
  if (polled[0].revents)
    accept_callers(world);
}

void burst_callers_close(burst_world *world) {
  for (size_t i = 0; i < world->callers.count; ++i)
    close(world->callers.list[i].fd);
  world->callers.count = 0;
}
