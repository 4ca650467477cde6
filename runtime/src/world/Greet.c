//===- Greet.c - Connecting to a rank -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/world/Greet.h"
#include "burst/internal/error.h"
#include "runtime/src/base/Clock.h"
#include "runtime/src/world/Descriptors.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// One call: what was opened for it, and why it failed, as a number of errno.
typedef struct call {
  burst_world *world;
  int64_t peer, purpose;
  burst_wait wait;
  int fd;       // -1: none
  int listener; // of this rank
  int failure;
  bool spoke; // said hello
} call;

#define LOCATION(call, text)                                                   \
  char text[32];                                                               \
  snprintf(text, sizeof(text), "rank %" PRId64, (call)->world->rank)

static void hang_up(call *call) {
  if (call->fd >= 0)
    close(call->fd);
  call->fd = -1;
}

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

static burst_error *no_rank(const call *call, const unsigned char *heard) {
  LOCATION(call, location);
  burst_address address = burst_socket_remote(call->fd);
  return burst_error_create(BURST_SYSTEM, location,
                            "world: what listens at %s is not rank %" PRId64
                            " of this job: it begins with %02x %02x %02x %02x",
                            burst_address_print(&address).text, call->peer,
                            heard[0], heard[1], heard[2], heard[3]);
}

static burst_error *read_refusal(const call *call, size_t bytes) {
  LOCATION(call, location);
  char text[BURST_MOST_REASON + 1] = "";
  if (burst_socket_receive(call->fd, text, bytes, &call->wait))
    snprintf(text, sizeof(text), "no reason was heard");
  return burst_error_create(BURST_PEER_STOPPED, location,
                            "world: rank %" PRId64 " refused: %s", call->peer,
                            text);
}

static bool is_sensible(const burst_header *header) {
  const size_t least = sizeof(uint64_t), most = least + BURST_MOST_REASON;
  return header->magic == BURST_WIRE_MAGIC &&
         (header->kind == BURST_WELCOME
              ? header->bytes == least
              : header->kind == BURST_REFUSED && header->bytes >= least &&
                    header->bytes <= most);
}

static burst_error *wrong_version(const call *call, int version) {
  LOCATION(call, location);
  return burst_error_create(BURST_MISMATCH, location,
                            "world: rank %" PRId64
                            " speaks version %d of burst, wanted %d",
                            call->peer, version, BURST_WIRE_VERSION);
}

static bool is_silence(const unsigned char *heard) {
  return (heard[0] | heard[1] | heard[2] | heard[3]) == 0;
}

static burst_error *read_answer(call *call, burst_answer *answer) {
  memset(answer, 0, sizeof(*answer));
  call->failure =
      burst_socket_receive(call->fd, answer, sizeof(*answer), &call->wait);
  if (call->failure && is_silence(answer->token))
    return NULL;
  if (call->failure ||
      !burst_token_equal(answer->token, call->world->token.answer))
    return no_rank(call, answer->token);
  if (answer->header.version != BURST_WIRE_VERSION)
    return wrong_version(call, answer->header.version);
  if (!is_sensible(&answer->header))
    return no_rank(call, (const unsigned char *)&answer->header);
  if (answer->header.kind == BURST_REFUSED)
    return read_refusal(call, answer->header.bytes - sizeof(answer->world));
  uint64_t known = call->world->number;
  if (known != 0 && known != answer->world)
    return no_rank(call, (const unsigned char *)&answer->world);
  return NULL;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

static void say_hello(call *call) {
  const burst_world *world = call->world;
  burst_hello_message message = {
      .header = burst_header_of(BURST_HELLO, sizeof(burst_hello)),
      .hello = {world->number, world->rank, call->purpose, world->generation,
                0}};
  if (call->listener >= 0) {
    burst_address mine = burst_socket_local(call->listener);
    message.hello.port = burst_address_port(&mine);
  }
  memcpy(message.token, world->token.hello, sizeof(message.token));
  call->failure =
      burst_socket_send(call->fd, &message, sizeof(message), &call->wait);
  call->spoke = !call->failure;
}

// Rank 0 has made the token's file before it listens, and how this rank reaches
// it tells the address at which others reach this rank.
static burst_error *prepare(call *call) {
  burst_world *world = call->world;
  burst_address mine = burst_socket_local(call->fd);
  burst_error *error =
      burst_token_find(&world->place, &world->addresses[0], &world->token);
  burst_address_set_port(&mine, 0);
  if (!error && call->listener < 0 && !world->is_short)
    call->failure = burst_socket_listen(&mine, &call->listener);
  return error;
}

static burst_error *try_call(call *call, burst_answer *answer) {
  burst_world *world = call->world;
  call->spoke = false;
  call->failure = burst_socket_connect(&world->addresses[call->peer],
                                       &call->wait, &call->fd);
  if (call->failure)
    return NULL;
  burst_error *error = world->number == 0 ? prepare(call) : NULL;
  if (!error && !call->failure)
    say_hello(call);
  if (!error && !call->failure)
    error = read_answer(call, answer);
  if (error || call->failure)
    hang_up(call);
  return error;
}

static bool is_shortage(int failure) {
  return failure == EMFILE || failure == ENFILE;
}

static burst_error *unreachable(const call *call) {
  LOCATION(call, location);
  if (is_shortage(call->failure))
    return burst_error_create(
        BURST_SYSTEM, location, "%s",
        burst_descriptors_explain(call->world->rank, call->world->num_ranks)
            .text);
  const char *hint = "";
  if (call->spoke && call->failure == ECONNRESET)
    hint = "; it hangs up on those who do not have the token of its job: the "
           "same BURST_TOKEN, address of rank 0 and number of ranks";
  return burst_error_create(
      BURST_DEADLINE_EXCEEDED, location,
      "world: rank %" PRId64 " cannot reach rank %" PRId64
      " at %s in time: %s%s",
      call->world->rank, call->peer,
      burst_address_print(&call->world->addresses[call->peer]).text,
      strerror(call->failure), hint);
}

bool burst_greet_spares(burst_world *world, int failure) {
  if (!is_shortage(failure))
    return false;
  pthread_mutex_lock(&world->mutex);
  world->is_short = true;
  bool spared = burst_members_spare(world);
  pthread_mutex_unlock(&world->mutex);
  return spared;
}

static bool is_final(const call *call) {
  return is_shortage(call->failure)
             ? !burst_greet_spares(call->world, call->failure)
             : call->failure == ECANCELED;
}

// A rank may be there later than this one.
static burst_error *call_until(call *call, burst_answer *answer) {
  int64_t pause = 10 * INT64_C(1000000);
  do {
    burst_error *error = try_call(call, answer);
    if (error || !call->failure)
      return error;
    int64_t until = burst_now() + pause;
    burst_wait rest = {until < call->wait.deadline ? until
                                                   : call->wait.deadline,
                       call->wait.alarm};
    burst_socket_await(-1, 0, &rest);
    pause = pause < INT64_C(500000000) ? pause * 3 / 2 : pause;
  } while (burst_now() < call->wait.deadline && !is_final(call));
  return unreachable(call);
}

burst_error *burst_greet(burst_world *world, int64_t peer, int64_t purpose,
                         int64_t deadline, int *fd) {
  burst_answer answer;
  call call = {world,           peer, purpose, {deadline, world->alarm}, -1,
               world->listener, 0,    false};
  burst_error *error = call_until(&call, &answer);
  *fd = call.fd;
  return error;
}

burst_error *burst_greet_rank_0(burst_world *world, int64_t deadline) {
  burst_answer answer;
  call call = {world, 0,    BURST_FOR_MEMBER, {deadline, world->alarm}, -1, -1,
               0,     false};
  burst_error *error = call_until(&call, &answer);
  if (error) {
    if (call.listener >= 0)
      close(call.listener);
    return error;
  }
  pthread_mutex_lock(&world->mutex);
  world->number = answer.world;
  world->listener = call.listener;
  burst_members_adopt(world, 0, call.fd);
  pthread_mutex_unlock(&world->mutex);
  return NULL;
}
