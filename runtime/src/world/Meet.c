//===- Meet.c - How the processes of a world connect ----------------------===//

#include "Meet.h"
#include "../Clock.h"
#include "../Error.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { HELLO = 1, WELCOME = 2, REFUSED = 3 };
enum { MOST_CALLERS = 64, MOST_TEXT = 1024 };

// Payloads. A welcome of rank 0 in the first meeting has the addresses of all
// ranks behind it, a refusal is a text.
typedef struct hello {
  uint64_t world; // 0 in the first meeting with rank 0
  int64_t rank, num_ranks, generation, port;
} hello;

typedef struct hello_message {
  burst_header header;
  hello hello;
} hello_message;

typedef struct wire_address {
  uint16_t family; // 4 or 6
  uint16_t port;
  unsigned char bytes[16];
} wire_address;

static wire_address pack(const burst_address *address) {
  wire_address packed = {.port = (uint16_t)burst_address_port(address)};
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

static burst_address unpack(const wire_address *packed) {
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

static void pause_briefly(void) {
  struct timespec time = {0, 20 * 1000 * 1000};
  nanosleep(&time, NULL);
}

static void close_all(const burst_meeting *meeting, int *fds) {
  for (int64_t i = 0; i < meeting->place.num_ranks; ++i) {
    if (fds[i] >= 0)
      close(fds[i]);
    fds[i] = -1;
  }
}

//===----------------------------------------------------------------------===//
// Who connects
//===----------------------------------------------------------------------===//

#define LOCATION(meeting, text)                                                \
  char text[32];                                                               \
  snprintf(text, sizeof(text), "rank %" PRId64, (meeting)->place.rank)

static burst_error *no_burst(const burst_meeting *meeting, int64_t peer,
                             const burst_address *address, const void *heard) {
  LOCATION(meeting, location);
  const unsigned char *b = heard;
  return burst_error_create(BURST_SYSTEM, location,
                            "world: what listens at %s is not rank %" PRId64
                            ": it begins with %02x %02x %02x %02x",
                            burst_address_print(address).text, peer, b[0], b[1],
                            b[2], b[3]);
}

static burst_error *read_refusal(const burst_meeting *meeting, int64_t peer,
                                 int fd, size_t bytes, int64_t deadline) {
  LOCATION(meeting, location);
  char text[MOST_TEXT + 1] = "";
  if (burst_socket_receive(fd, text, bytes, deadline))
    snprintf(text, sizeof(text), "no reason was heard");
  return burst_error_create(BURST_PEER_STOPPED, location,
                            "world: rank %" PRId64 " refused: %s", peer, text);
}

// Reads the answer to a hello: `count` addresses follow a welcome. A failure of
// the connection is a number of errno.
static burst_error *read_answer(burst_meeting *meeting, int64_t peer, int fd,
                                int64_t deadline, size_t count, int *failure) {
  burst_header header;
  burst_address address = burst_socket_remote(fd);
  *failure = burst_socket_receive(fd, &header, sizeof(header), deadline);
  if (*failure)
    return NULL;
  size_t bytes = sizeof(uint64_t) + count * sizeof(wire_address);
  bool welcome = header.kind == WELCOME && header.bytes == bytes;
  if (header.magic != BURST_WIRE_MAGIC ||
      header.version != BURST_WIRE_VERSION ||
      (!welcome && (header.kind != REFUSED || header.bytes > MOST_TEXT)))
    return no_burst(meeting, peer, &address, &header);
  if (!welcome)
    return read_refusal(meeting, peer, fd, header.bytes, deadline);
  uint64_t world;
  *failure = burst_socket_receive(fd, &world, sizeof(world), deadline);
  if (*failure)
    return NULL;
  if (count > 0)
    meeting->world = world;
  else if (meeting->world != world)
    return no_burst(meeting, peer, &address, &world);
  for (size_t i = 0; i < count; ++i) {
    wire_address packed;
    *failure = burst_socket_receive(fd, &packed, sizeof(packed), deadline);
    if (*failure)
      return NULL;
    if (i > 0) // that of rank 0 is known better here
      meeting->addresses[i] = unpack(&packed);
  }
  return NULL;
}

static burst_error *greet(burst_meeting *meeting, int64_t peer,
                          int64_t deadline, size_t count, int *fd,
                          int *failure) {
  const burst_address *address = &meeting->addresses[peer];
  *failure = burst_socket_connect(address, deadline, fd);
  if (*failure)
    return NULL;
  burst_address mine = burst_socket_local(meeting->listener);
  hello_message message = {burst_header_of(HELLO, sizeof(hello)),
                           {meeting->world, meeting->place.rank,
                            meeting->place.num_ranks, meeting->generation,
                            burst_address_port(&mine)}};
  *failure = burst_socket_send(*fd, &message, sizeof(message), deadline);
  burst_error *error = NULL;
  // Who listens tells of its deadline, which may be a little later.
  if (!*failure)
    error = read_answer(meeting, peer, *fd, deadline + INT64_C(2000000000),
                        count, failure);
  if (error || *failure) {
    close(*fd);
    *fd = -1;
  }
  return error;
}

// Until it is there, which may be later than this rank.
static burst_error *connect_to(burst_meeting *meeting, int64_t peer,
                               int64_t deadline, size_t count, int *fd) {
  int failure;
  do {
    burst_error *error = greet(meeting, peer, deadline, count, fd, &failure);
    if (error || !failure)
      return error;
    pause_briefly();
  } while (burst_now() < deadline);
  LOCATION(meeting, location);
  return burst_error_create(
      BURST_DEADLINE_EXCEEDED, location,
      "world: cannot reach rank %" PRId64 " at %s in time: %s", peer,
      burst_address_print(&meeting->addresses[peer]).text, strerror(failure));
}

//===----------------------------------------------------------------------===//
// Who listens
//===----------------------------------------------------------------------===//

// Someone who has not yet said hello.
typedef struct caller {
  int fd;
  size_t got;
  char bytes[sizeof(hello_message)];
} caller;

typedef struct reception {
  burst_meeting *meeting;
  int *fds;
  int64_t lowest, missing; // ranks to come: from where on, how many
  size_t num_callers;      // the one that called first is the first
  caller callers[MOST_CALLERS];
  int64_t dropped;
  char last_drop[128]; // who, and why
} reception;

static void remove_caller(reception *at, size_t index) {
  --at->num_callers;
  memmove(&at->callers[index], &at->callers[index + 1],
          (at->num_callers - index) * sizeof(caller));
}

static void drop(reception *at, size_t index, const char *why) {
  int fd = at->callers[index].fd;
  burst_address address = burst_socket_remote(fd);
  ++at->dropped;
  snprintf(at->last_drop, sizeof(at->last_drop), "%s, %s",
           burst_address_print(&address).text, why);
  close(fd);
  remove_caller(at, index);
}

static void accept_callers(reception *at) {
  int fd;
  while ((fd = burst_socket_accept(at->meeting->listener)) >= 0) {
    if (at->num_callers == MOST_CALLERS)
      drop(at, 0, "which said nothing");
    at->callers[at->num_callers++] = (caller){.fd = fd};
  }
}

static bool is_open(int fd) {
  char byte;
  ssize_t peeked = recv(fd, &byte, 1, MSG_PEEK);
  return peeked > 0 || (peeked < 0 && errno == EAGAIN);
}

static burst_error *wrong_start(const reception *at, int fd, const char *text) {
  LOCATION(at->meeting, location);
  burst_address address = burst_socket_remote(fd);
  return burst_error_create(BURST_MISMATCH, location,
                            "world: a process at %s %s",
                            burst_address_print(&address).text, text);
}

static burst_error *check_hello(const reception *at, int fd,
                                const hello *hello) {
  char text[128];
  const burst_place *place = &at->meeting->place;
  if (hello->num_ranks != place->num_ranks || hello->rank < at->lowest ||
      hello->rank >= place->num_ranks) {
    snprintf(text, sizeof(text),
             "says that it is rank %" PRId64 " of %" PRId64
             ", wanted one of the ranks %" PRId64 " to %" PRId64 " of %" PRId64,
             hello->rank, hello->num_ranks, at->lowest, place->num_ranks - 1,
             place->num_ranks);
    return wrong_start(at, fd, text);
  }
  int before = at->fds[hello->rank];
  if (before >= 0 && is_open(before)) {
    burst_address other = burst_socket_remote(before);
    snprintf(text, sizeof(text),
             "says that it is rank %" PRId64 ", as another one at %s does",
             hello->rank, burst_address_print(&other).text);
    return wrong_start(at, fd, text);
  }
  return NULL;
}

// Only rank 0 can judge what others were started with; to the others it has
// said who belongs to the world.
static burst_error *take_hello(reception *at, size_t index,
                               const hello *hello) {
  burst_meeting *meeting = at->meeting;
  int fd = at->callers[index].fd;
  bool first = meeting->generation == 0 && meeting->place.rank == 0;
  if (hello->world != (first ? 0 : meeting->world) ||
      hello->generation != meeting->generation) {
    drop(at, index, "which is of another world");
    return NULL;
  }
  burst_error *error = check_hello(at, fd, hello);
  if (error)
    return error;
  if (first) {
    meeting->addresses[hello->rank] = burst_socket_remote(fd);
    burst_address_set_port(&meeting->addresses[hello->rank], hello->port);
  }
  if (at->fds[hello->rank] >= 0) // that process is gone
    close(at->fds[hello->rank]);
  else
    --at->missing;
  at->fds[hello->rank] = fd;
  remove_caller(at, index);
  return NULL;
}

// Reads what a caller says; it may be gone from the list afterwards.
static burst_error *listen_to(reception *at, size_t index) {
  caller *caller = &at->callers[index];
  ssize_t got = recv(caller->fd, caller->bytes + caller->got,
                     sizeof(caller->bytes) - caller->got, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR))
    return NULL;
  if (got <= 0) {
    drop(at, index, "which hung up");
    return NULL;
  }
  caller->got += (size_t)got;
  if (caller->got < sizeof(burst_header))
    return NULL;
  hello_message message;
  memcpy(&message, caller->bytes, sizeof(message));
  if (message.header.magic != BURST_WIRE_MAGIC) {
    drop(at, index, "which is not of burst");
    return NULL;
  }
  if (message.header.version != BURST_WIRE_VERSION) {
    char text[64];
    snprintf(text, sizeof(text), "speaks version %d of burst, wanted %d",
             message.header.version, BURST_WIRE_VERSION);
    return wrong_start(at, caller->fd, text);
  }
  if (message.header.kind != HELLO || message.header.bytes != sizeof(hello)) {
    drop(at, index, "which does not say hello");
    return NULL;
  }
  return caller->got == sizeof(message) ? take_hello(at, index, &message.hello)
                                        : NULL;
}

static burst_error *nobody_came(const reception *at, double seconds) {
  LOCATION(at->meeting, location);
  char ranks[128] = "", dropped[192] = "";
  size_t length = 0;
  for (int64_t i = at->lowest; i < at->meeting->place.num_ranks; ++i)
    if (at->fds[i] < 0 && length < sizeof(ranks) - 32)
      length += (size_t)snprintf(ranks + length, sizeof(ranks) - length,
                                 "%s%" PRId64, length ? ", " : "", i);
  if (at->dropped)
    snprintf(dropped, sizeof(dropped),
             " (%" PRId64 " connections were dropped, the last from %s)",
             at->dropped, at->last_drop);
  burst_address address = burst_socket_local(at->meeting->listener);
  return burst_error_create(
      BURST_DEADLINE_EXCEEDED, location,
      "world: waited %.1f s at %s: %" PRId64 " ranks have not come: %s%s",
      seconds, burst_address_print(&address).text, at->missing, ranks, dropped);
}

static void dismiss_callers(reception *at, const char *reason) {
  size_t length = strlen(reason) < MOST_TEXT ? strlen(reason) : MOST_TEXT;
  burst_header header = burst_header_of(REFUSED, length);
  for (size_t i = 0; i < at->num_callers; ++i) {
    int fd = at->callers[i].fd;
    if (*reason && !burst_socket_send(fd, &header, sizeof(header), 0))
      burst_socket_send(fd, reason, length, 0);
    close(fd);
  }
  at->num_callers = 0;
}

// Whether a rank has yet to come; one that came and went may come again.
static bool misses(reception *at) {
  int64_t ranks = at->meeting->place.num_ranks;
  for (int64_t i = at->lowest; i < ranks && at->missing == 0; ++i)
    if (!is_open(at->fds[i])) {
      close(at->fds[i]);
      at->fds[i] = -1;
      ++at->missing;
    }
  return at->missing > 0;
}

static burst_error *receive_all(reception *at, int64_t deadline) {
  int64_t began = burst_now();
  while (misses(at)) {
    struct pollfd polled[1 + MOST_CALLERS];
    size_t count = at->num_callers;
    polled[0] = (struct pollfd){at->meeting->listener, POLLIN, 0};
    for (size_t i = 0; i < count; ++i)
      polled[1 + i] = (struct pollfd){at->callers[i].fd, POLLIN, 0};
    burst_poll_until(polled, count + 1, deadline);
    // From the last one, because callers may be removed.
    for (size_t i = count; i-- > 0;) {
      burst_error *error = polled[1 + i].revents ? listen_to(at, i) : NULL;
      if (error)
        return error;
    }
    if (polled[0].revents)
      accept_callers(at);
    if (at->missing > 0 && burst_now() >= deadline)
      return nobody_came(at, burst_seconds(burst_now() - began));
  }
  return NULL;
}

static burst_error *answer(const burst_meeting *meeting, int64_t peer, int fd,
                           int64_t deadline) {
  size_t count = meeting->generation == 0 && meeting->place.rank == 0
                     ? (size_t)meeting->place.num_ranks
                     : 0;
  size_t bytes = sizeof(uint64_t) + count * sizeof(wire_address);
  burst_header header = burst_header_of(WELCOME, bytes);
  int failure = burst_socket_send(fd, &header, sizeof(header), deadline);
  if (!failure)
    failure = burst_socket_send(fd, &meeting->world, sizeof(meeting->world),
                                deadline);
  for (size_t i = 0; i < count && !failure; ++i) {
    wire_address packed = pack(&meeting->addresses[i]);
    failure = burst_socket_send(fd, &packed, sizeof(packed), deadline);
  }
  if (!failure)
    return NULL;
  LOCATION(meeting, location);
  return burst_error_create(BURST_PEER_STOPPED, location,
                            "world: rank %" PRId64
                            " went away while ranks met: %s",
                            peer, strerror(failure));
}

// Tells those who came why it ends.
static void refuse(const burst_meeting *meeting, const int *fds, int64_t lowest,
                   const char *reason) {
  size_t length = strlen(reason) < MOST_TEXT ? strlen(reason) : MOST_TEXT;
  burst_header header = burst_header_of(REFUSED, length);
  for (int64_t i = lowest; i < meeting->place.num_ranks; ++i)
    if (fds[i] >= 0 && !burst_socket_send(fds[i], &header, sizeof(header), 0))
      burst_socket_send(fds[i], reason, length, 0);
}

// The ranks from `lowest` on.
static burst_error *receive_ranks(burst_meeting *meeting, int64_t lowest,
                                  int64_t deadline, int *fds) {
  reception *at = calloc(1, sizeof(*at));
  if (!at)
    return burst_error_no_memory(sizeof(*at));
  at->meeting = meeting;
  at->fds = fds;
  at->lowest = lowest;
  at->missing = meeting->place.num_ranks - lowest;
  burst_error *error = receive_all(at, deadline);
  dismiss_callers(at, error ? burst_error_message(error) : "");
  free(at);
  if (error)
    refuse(meeting, fds, lowest, burst_error_message(error));
  for (int64_t i = lowest; i < meeting->place.num_ranks && !error; ++i)
    error = answer(meeting, i, fds[i], deadline);
  return error;
}

//===----------------------------------------------------------------------===//
// Meetings
//===----------------------------------------------------------------------===//

static burst_error *meet_rank_0(burst_meeting *meeting, int64_t deadline,
                                int *fd) {
  burst_error *error =
      connect_to(meeting, 0, deadline, (size_t)meeting->place.num_ranks, fd);
  if (error)
    return error;
  // Ranks on the machine of rank 0 may have called it by an address that means
  // another machine here.
  for (int64_t i = 1; i < meeting->place.num_ranks; ++i)
    if (burst_address_is_loopback(&meeting->addresses[i])) {
      int64_t port = burst_address_port(&meeting->addresses[i]);
      meeting->addresses[i] = meeting->addresses[0];
      burst_address_set_port(&meeting->addresses[i], port);
    }
  return NULL;
}

// With all ranks from `lowest` on.
static burst_error *meet_others(burst_meeting *meeting, int64_t lowest,
                                int64_t deadline, int *fds) {
  burst_error *error = NULL;
  for (int64_t i = lowest; i < meeting->place.rank && !error; ++i)
    error = connect_to(meeting, i, deadline, 0, &fds[i]);
  int64_t above = meeting->place.rank + 1;
  return error ? error
               : receive_ranks(meeting, above > lowest ? above : lowest,
                               deadline, fds);
}

static burst_error *meet(burst_meeting *meeting, int64_t deadline, int *fds) {
  const burst_place *place = &meeting->place;
  burst_error *error =
      burst_address_resolve(place->host, place->port, &meeting->addresses[0]);
  if (error)
    return error;
  burst_address mine = meeting->addresses[0];
  if (place->rank > 0)
    burst_address_set_port(&mine, 0);
  error = burst_socket_listen(&mine, &meeting->listener);
  if (error)
    return error;
  if (place->rank == 0) {
    if (getrandom(&meeting->world, sizeof(meeting->world), 0) < 0)
      meeting->world = (uint64_t)burst_now();
    meeting->world |= 1; // not 0
    return receive_ranks(meeting, 1, deadline, fds);
  }
  error = meet_rank_0(meeting, deadline, &fds[0]);
  return error ? error : meet_others(meeting, 1, deadline, fds);
}

burst_error *burst_meeting_begin(const burst_place *place, int64_t deadline,
                                 burst_meeting *meeting, int *fds) {
  *meeting = (burst_meeting){.place = *place, .listener = -1};
  for (int64_t i = 0; i < place->num_ranks; ++i)
    fds[i] = -1;
  if (place->num_ranks == 1)
    return NULL;
  size_t bytes = (size_t)place->num_ranks * sizeof(burst_address);
  meeting->addresses = calloc(1, bytes);
  if (!meeting->addresses)
    return burst_error_no_memory(bytes);
  burst_error *error = meet(meeting, deadline, fds);
  if (error) {
    close_all(meeting, fds);
    burst_meeting_end(meeting);
  }
  return error;
}

burst_error *burst_meeting_repeat(burst_meeting *meeting, int64_t deadline,
                                  int *fds) {
  for (int64_t i = 0; i < meeting->place.num_ranks; ++i)
    fds[i] = -1;
  ++meeting->generation;
  if (meeting->place.num_ranks == 1)
    return NULL;
  burst_error *error = meet_others(meeting, 0, deadline, fds);
  if (error)
    close_all(meeting, fds);
  return error;
}

void burst_meeting_end(burst_meeting *meeting) {
  if (meeting->listener >= 0)
    close(meeting->listener);
  meeting->listener = -1;
  free(meeting->addresses);
  meeting->addresses = NULL;
}
