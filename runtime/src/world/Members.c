//===- Members.c - The ranks of a world -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/world/Members.h"
#include "runtime/src/base/Clock.h"
#include "runtime/src/world/Meet.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { PULSE = 16, GATHERED = 17, FAILED = 18, GOODBYE = 19, ROSTER = 20 };
enum { MOST_TEXT = 4096 };

typedef struct failed {
  int64_t culprit, code; // the sentence follows
} failed;

//===----------------------------------------------------------------------===//
// Telling
//===----------------------------------------------------------------------===//

static bool reserve(burst_member *member, size_t bytes) {
  if (member->out_begin > 0) {
    memmove(member->out, member->out + member->out_begin,
            member->out_end - member->out_begin);
    member->out_end -= member->out_begin;
    member->out_begin = 0;
  }
  size_t wanted = member->out_end + bytes;
  if (wanted <= member->out_capacity)
    return true;
  char *grown = realloc(member->out, wanted * 2);
  if (!grown)
    return false;
  member->out = grown;
  member->out_capacity = wanted * 2;
  return true;
}

static void append(burst_member *member, const void *data, size_t bytes) {
  if (bytes > 0)
    memcpy(member->out + member->out_end, data, bytes);
  member->out_end += bytes;
}

static void signal_to(int fd) {
  uint64_t one = 1;
  ssize_t written = write(fd, &one, sizeof(one));
  (void)written; // fails only if it is signalled already
}

void burst_members_wake(const burst_world *world) { signal_to(world->wakes); }

// Two parts as one message.
static void tell(burst_world *world, uint16_t kind, const void *first,
                 size_t first_bytes, const void *second, size_t second_bytes) {
  burst_header header = burst_header_of(kind, first_bytes + second_bytes);
  bool complete = true;
  for (int64_t i = 0; i < world->num_ranks; ++i) {
    burst_member *member = &world->members[i];
    if (member->fd < 0)
      continue;
    if (!reserve(member, sizeof(header) + header.bytes)) {
      complete = false;
      continue;
    }
    append(member, &header, sizeof(header));
    append(member, first, first_bytes);
    append(member, second, second_bytes);
  }
  if (!complete && kind != FAILED)
    burst_members_fail_rank(world, world->rank, "ran out of memory");
  burst_members_wake(world);
}

void burst_members_tell_pulse(burst_world *world) {
  tell(world, PULSE, &world->members[world->rank].pulse, sizeof(burst_pulse),
       NULL, 0);
}

void burst_members_tell_gathered(burst_world *world, const burst_share *share) {
  tell(world, GATHERED, &share->number, sizeof(share->number), share->data,
       share->bytes);
}

void burst_members_tell_roster(burst_world *world,
                               const burst_wire_address *roster) {
  tell(world, ROSTER, roster, (size_t)world->num_ranks * sizeof(*roster), NULL,
       0);
}

void burst_members_tell_goodbye(burst_world *world) {
  tell(world, GOODBYE, NULL, 0, NULL, 0);
}

void burst_members_fail(burst_world *world, int64_t culprit, burst_code code,
                        const char *sentence) {
  if (world->culprit >= 0)
    return;
  world->culprit = culprit;
  world->code = code;
  world->reason = strdup(sentence);
  failed message = {culprit, code};
  size_t length = strlen(sentence);
  tell(world, FAILED, &message, sizeof(message), sentence,
       length < MOST_TEXT ? length : MOST_TEXT);
  signal_to(world->alarm);
}

const char *burst_members_reason(const burst_world *world) {
  return world->reason ? world->reason : "out of memory";
}

void burst_members_fail_connection(burst_world *world, int64_t rank,
                                   const char *what) {
  char sentence[160];
  int64_t low = rank < world->rank ? rank : world->rank;
  int64_t high = rank < world->rank ? world->rank : rank;
  snprintf(sentence, sizeof(sentence),
           "the connection between ranks %" PRId64 " and %" PRId64 " %s", low,
           high, what);
  burst_members_fail(world, low, BURST_SYSTEM, sentence);
}

// What happened to a rank, and what its pulse said before, which may have
// changed since.
void burst_members_fail_rank(burst_world *world, int64_t rank,
                             const char *what) {
  char sentence[256];
  const burst_member *member = &world->members[rank];
  int64_t now = burst_now(), felt = rank == world->rank ? now : member->felt;
  int length =
      snprintf(sentence, sizeof(sentence), "rank %" PRId64 " %s", rank, what);
  char *end = sentence + length;
  size_t left = sizeof(sentence) - (size_t)length;
  if (member->pulse.run > 0 && member->pulse.activity == BURST_IDLE)
    snprintf(end, left, "; %.1f s before, it was in no run",
             burst_seconds(now - felt));
  else if (member->pulse.hop > 0)
    snprintf(end, left, "; %.1f s before, it was at hop %" PRId64,
             burst_seconds(now - felt), member->pulse.hop);
  else if (member->pulse.run > 0)
    snprintf(end, left, "; %.1f s before, it was in front of its first hop",
             burst_seconds(now - felt));
  else
    snprintf(end, left, " before its first run");
  burst_members_fail(world, rank, BURST_PEER_STOPPED, sentence);
}

// Writes what the connection takes.
static void write_out(burst_member *member) {
  while (member->fd >= 0 && member->out_begin < member->out_end) {
    ssize_t sent = send(member->fd, member->out + member->out_begin,
                        member->out_end - member->out_begin, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
      return;
    if (sent < 0) // reading will tell
      member->out_begin = member->out_end;
    else
      member->out_begin += (size_t)sent;
  }
}

//===----------------------------------------------------------------------===//
// Hearing
//===----------------------------------------------------------------------===//

bool burst_members_spare(burst_world *world) {
  for (int i = 0; i < 2; ++i)
    if (world->spares[i] >= 0) {
      close(world->spares[i]);
      world->spares[i] = -1;
      return true;
    }
  return false;
}

void burst_members_adopt(burst_world *world, int64_t rank, int fd) {
  burst_member *member = &world->members[rank];
  member->fd = fd;
  member->came = true;
  member->heard = burst_now();
  burst_members_wake(world);
  pthread_cond_broadcast(&world->changed);
}

static void close_member(burst_member *member) {
  close(member->fd);
  member->fd = -1;
  member->out_begin = member->out_end = 0;
}

static bool is_sensible(const burst_world *world, const burst_header *header) {
  if (header->magic != BURST_WIRE_MAGIC ||
      header->version != BURST_WIRE_VERSION)
    return false;
  switch (header->kind) {
  case PULSE:
    return header->bytes == sizeof(burst_pulse);
  case GATHERED:
    return header->bytes >= sizeof(int64_t) &&
           header->bytes <= sizeof(int64_t) + BURST_MOST_GATHERED;
  case FAILED:
    return header->bytes >= sizeof(failed) &&
           header->bytes <= sizeof(failed) + MOST_TEXT;
  case ROSTER:
    return header->bytes ==
           (size_t)world->num_ranks * sizeof(burst_wire_address);
  case GOODBYE:
    return header->bytes == 0;
  default:
    return false;
  }
}

static bool hear_pulse(const burst_world *world, burst_member *member) {
  burst_pulse pulse;
  memcpy(&pulse, member->payload, sizeof(pulse));
  if (pulse.activity < BURST_IDLE || pulse.activity > BURST_WAITING ||
      pulse.peer < 0 || pulse.peer >= world->num_ranks)
    return false;
  member->pulse = pulse;
  member->felt = burst_now();
  return true;
}

// Keeps the payload.
static bool hear_share(burst_member *member) {
  burst_share share = {.bytes = member->header.bytes - sizeof(share.number),
                       .data = member->payload};
  memcpy(&share.number, member->payload, sizeof(share.number));
  if (share.number < 1)
    return false;
  burst_share *kept = &member->shares[share.number % 2];
  if (kept->data || share.number <= kept->number)
    return false;
  memmove(share.data, share.data + sizeof(share.number), share.bytes);
  *kept = share;
  member->payload = NULL;
  return true;
}

static bool hear_failed(burst_world *world, const burst_member *member) {
  failed message;
  char sentence[MOST_TEXT + 1];
  size_t length = member->header.bytes - sizeof(message);
  memcpy(&message, member->payload, sizeof(message));
  memcpy(sentence, member->payload + sizeof(message), length);
  sentence[length] = 0;
  if (message.culprit < 0 || message.culprit >= world->num_ranks ||
      message.code < BURST_INVALID_ARGUMENT || message.code > BURST_SYSTEM)
    return false;
  burst_members_fail(world, message.culprit, (burst_code)message.code,
                     sentence);
  return true;
}

static bool hear(burst_world *world, burst_member *member) {
  switch (member->header.kind) {
  case PULSE:
    return hear_pulse(world, member);
  case GATHERED:
    return hear_share(member);
  case FAILED:
    return hear_failed(world, member);
  case ROSTER:
    return member == world->members &&
           burst_meet_take_roster(world, member->payload);
  default:
    member->left = true;
    burst_socket_acknowledge(member->fd);
    return true;
  }
}

static void fail_nonsense(burst_world *world, int64_t rank) {
  char what[96];
  const burst_header *header = &world->members[rank].header;
  snprintf(what, sizeof(what),
           "sent what makes no sense (%08x, version %d, kind %d of %" PRIu64
           " bytes)",
           header->magic, header->version, header->kind, header->bytes);
  burst_members_fail_rank(world, rank, what);
}

typedef enum outcome { MORE, NOTHING, ENDED, NONSENSE } outcome;

// Reads a part of a message.
static outcome read_part(burst_world *world, burst_member *member) {
  burst_header *header = &member->header;
  bool in_header = member->header_bytes < sizeof(*header);
  char *to = in_header ? (char *)header + member->header_bytes
                       : member->payload + member->payload_bytes;
  size_t wanted = in_header ? sizeof(*header) - member->header_bytes
                            : header->bytes - member->payload_bytes;
  if (wanted > 0) {
    ssize_t got = recv(member->fd, to, wanted, 0);
    if (got == 0)
      return ENDED;
    if (got < 0)
      return errno == EAGAIN || errno == EINTR ? NOTHING : ENDED;
    member->heard = burst_now();
    *(in_header ? &member->header_bytes : &member->payload_bytes) +=
        (size_t)got;
  }
  if (member->header_bytes < sizeof(*header))
    return MORE;
  if (in_header) {
    if (!is_sensible(world, header))
      return NONSENSE;
    member->payload = malloc(header->bytes + 1);
    if (!member->payload) {
      burst_members_fail_rank(world, world->rank, "ran out of memory");
      return ENDED;
    }
  }
  if (member->payload_bytes < header->bytes)
    return MORE;
  bool sensible = hear(world, member);
  free(member->payload);
  member->payload = NULL;
  member->header_bytes = member->payload_bytes = 0;
  return sensible ? MORE : NONSENSE;
}

static void read_all(burst_world *world, int64_t rank) {
  burst_member *member = &world->members[rank];
  outcome read;
  do
    read = read_part(world, member);
  while (read == MORE);
  if (read == NOTHING)
    return;
  if (read == NONSENSE)
    fail_nonsense(world, rank);
  close_member(member);
  if (read == ENDED && !member->left && !world->ending && world->culprit < 0 &&
      member->probe.fd < 0)
    burst_probe_begin(world, rank);
}

//===----------------------------------------------------------------------===//
// The thread
//===----------------------------------------------------------------------===//

// Who has not been heard for too long.
static void check_silence(burst_world *world, int64_t now) {
  for (int64_t i = 0; i < world->num_ranks; ++i) {
    const burst_member *member = &world->members[i];
    if (member->fd < 0 || member->left || now - member->heard < world->silence)
      continue;
    char what[64];
    snprintf(what, sizeof(what), "has been silent for %.1f s",
             burst_seconds(now - member->heard));
    burst_members_fail_rank(world, i, what);
  }
}

// While this process was stopped itself, it has heard nobody: a time that it
// woke up too late is not one in which others were silent.
static void forgive_silence(burst_world *world, int64_t now, int64_t late) {
  for (int64_t i = 0; i < world->num_ranks; ++i) {
    int64_t *heard = &world->members[i].heard;
    *heard = *heard + late < now ? *heard + late : now;
  }
}

// Tells callers and the transport, and lets the mutex go for that.
static void spread_failure(burst_world *world) {
  for (int64_t i = 0; i < world->num_ranks; ++i)
    write_out(&world->members[i]);
  pthread_mutex_unlock(&world->mutex);
  pthread_mutex_lock(&world->transport_mutex);
  if (world->transport_failed)
    world->transport_failed(world->transport);
  pthread_mutex_unlock(&world->transport_mutex);
  pthread_mutex_lock(&world->mutex);
  world->told = true;
}

// Whether all that was said has arrived at the other machines.
static bool all_arrived(const burst_world *world) {
  for (int64_t i = 0; i < world->num_ranks; ++i) {
    const burst_member *member = &world->members[i];
    int unsent = 0;
    if (member->fd >= 0 &&
        (member->out_begin < member->out_end ||
         (ioctl(member->fd, SIOCOUTQ, &unsent) == 0 && unsent > 0)))
      return false;
  }
  return true;
}

static size_t list_polled(const burst_world *world) {
  size_t count = (size_t)world->num_ranks;
  struct pollfd *polled = world->polled;
  for (size_t i = 0; i < count; ++i) {
    const burst_member *member = &world->members[i];
    bool writes = member->out_begin < member->out_end;
    polled[i] = (struct pollfd){member->fd,
                                (short)(POLLIN | (writes ? POLLOUT : 0)), 0};
    polled[count + i] = burst_probe_poll(&member->probe);
  }
  polled[2 * count] = (struct pollfd){world->wakes, POLLIN, 0};
  return 2 * count + 1 + burst_callers_poll(world, polled + 2 * count + 1);
}

static void serve(burst_world *world) {
  size_t count = (size_t)world->num_ranks;
  const struct pollfd *polled = world->polled;
  for (size_t i = 0; i < count; ++i) {
    burst_member *member = &world->members[i];
    // A descriptor that came meanwhile was not polled.
    if (member->fd >= 0 && member->fd == polled[i].fd && polled[i].revents)
      read_all(world, (int64_t)i);
    if (member->probe.fd >= 0 && member->probe.fd == polled[count + i].fd)
      burst_probe_serve(world, (int64_t)i, polled[count + i].revents != 0);
  }
  burst_callers_serve(world, polled + 2 * count + 1);
}

// The mutex is let go while there is nothing to do.
static void exchange(burst_world *world, int64_t deadline) {
  size_t count = list_polled(world);
  pthread_mutex_unlock(&world->mutex);
  burst_poll_sparse(world->polled, count, deadline);
  pthread_mutex_lock(&world->mutex);
  uint64_t wakes;
  ssize_t drained = read(world->wakes, &wakes, sizeof(wakes));
  (void)drained; // nothing, if nobody woke it
  serve(world);
  for (int64_t i = 0; i < world->num_ranks; ++i)
    write_out(&world->members[i]);
}

static void watch(burst_world *world) {
  int64_t next = burst_now(), end = INT64_MAX;
  for (;;) {
    int64_t now = burst_now();
    if (now >= next) {
      burst_members_tell_pulse(world);
      next = now + world->heartbeat;
    }
    if (world->ending && end == INT64_MAX)
      end = now + INT64_C(1000000000);
    if (world->ending && (now >= end || all_arrived(world)))
      return;
    int64_t due = world->ending ? now + 1000000 : next;
    exchange(world, due);
    now = burst_now();
    if (now > due)
      forgive_silence(world, now, now - due);
    if (!world->ending)
      check_silence(world, now);
    if (world->culprit >= 0 && !world->told)
      spread_failure(world);
    pthread_cond_broadcast(&world->changed);
  }
}

void *burst_members_watch(void *context) {
  burst_world *world = context;
  pthread_mutex_lock(&world->mutex);
  watch(world);
  world->told = true;
  pthread_cond_broadcast(&world->changed);
  pthread_mutex_unlock(&world->mutex);
  return NULL;
}
