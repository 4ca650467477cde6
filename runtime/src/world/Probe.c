//===- Probe.c - Whether a rank lives -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/base/Clock.h"
#include "runtime/src/world/Members.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static const int64_t patience = INT64_C(3000000000);
static const burst_wait at_once = {0, -1};

static void end(burst_probe *probe) {
  close(probe->fd);
  probe->fd = -1;
}

void burst_probe_begin(burst_world *world, int64_t rank) {
  burst_probe *probe = &world->members[rank].probe;
  *probe = (burst_probe){.fd = -1, .until = burst_now() + patience};
  int failure = burst_socket_begin_connect(&world->addresses[rank], &probe->fd);
  if (failure == EMFILE || failure == ENFILE)
    burst_members_fail_connection(world, rank, "broke");
  else if (failure != EINPROGRESS)
    burst_members_fail_rank(world, rank, "died");
}

struct pollfd burst_probe_poll(const burst_probe *probe) {
  return (struct pollfd){probe->fd, probe->said ? POLLIN : POLLOUT, 0};
}

// EAGAIN where the answer is still to come.
static int ask(const burst_world *world, burst_probe *probe) {
  burst_hello_message message = {
      .header = burst_header_of(BURST_HELLO, sizeof(burst_hello)),
      .hello = {world->number, world->rank, BURST_FOR_PROBE, 0, 0}};
  memcpy(message.token, world->token.hello, sizeof(message.token));
  probe->said = true;
  int failure = burst_socket_end_connect(probe->fd);
  if (!failure)
    failure = burst_socket_send(probe->fd, &message, sizeof(message), &at_once);
  return failure ? failure : EAGAIN;
}

static bool is_from_rank(const burst_world *world, const burst_probe *probe) {
  burst_answer answer;
  memcpy(&answer, probe->bytes, sizeof(answer));
  return burst_token_equal(answer.token, world->token.answer) &&
         answer.world == world->number;
}

// EAGAIN until all of an answer has come.
static int hear(const burst_world *world, burst_probe *probe) {
  ssize_t got = recv(probe->fd, probe->bytes + probe->got,
                     sizeof(probe->bytes) - probe->got, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR))
    return EAGAIN;
  if (got <= 0)
    return ECONNRESET;
  probe->got += (size_t)got;
  if (probe->got < sizeof(probe->bytes))
    return EAGAIN;
  return is_from_rank(world, probe) ? 0 : ECONNRESET;
}

static void conclude(burst_world *world, int64_t rank, int failure) {
  if (!failure)
    burst_members_fail_connection(world, rank, "broke");
  else if (failure == EHOSTUNREACH || failure == ENETUNREACH ||
           failure == ETIMEDOUT)
    burst_members_fail_connection(world, rank,
                                  "broke, and no other can be made");
  else
    burst_members_fail_rank(world, rank, "died");
  end(&world->members[rank].probe);
}

void burst_probe_serve(burst_world *world, int64_t rank, bool ready) {
  burst_probe *probe = &world->members[rank].probe;
  int failure = EAGAIN;
  if (ready && !probe->said)
    failure = ask(world, probe);
  else if (ready)
    failure = hear(world, probe);
  if (failure == EAGAIN && burst_now() >= probe->until)
    failure = ETIMEDOUT;
  if (world->culprit >= 0)
    end(probe);
  else if (failure != EAGAIN)
    conclude(world, rank, failure);
}
