//===- Progress.c - What moves between processes --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/error.h"
#include "runtime/src/base/Clock.h"
#include "runtime/src/transport/tcp/Tcp.h"
#include "runtime/src/world/World.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WANTED = 32, DATA = 33, GOODBYE = 34 };
enum { MOST_VECTORS = 64 };
static const int64_t second = INT64_C(1000000000);
// How long a connection may be broken before the world asks whether the other
// rank lives: what that one told of a failure has come by then.
static const int64_t patience = INT64_C(300000000);

#define APPEND(list, added)                                                    \
  do {                                                                         \
    __typeof__(&(list)) place = &(list);                                       \
    while (*place)                                                             \
      place = &(*place)->next;                                                 \
    *place = (added);                                                          \
    (added)->next = NULL;                                                      \
  } while (0)

#define REMOVE(list, removed)                                                  \
  do {                                                                         \
    __typeof__(&(list)) place = &(list);                                       \
    while (*place && *place != (removed))                                      \
      place = &(*place)->next;                                                 \
    if (*place)                                                                \
      *place = (*place)->next;                                                 \
  } while (0)

//===----------------------------------------------------------------------===//
// Frames
//===----------------------------------------------------------------------===//

static burst_frame *make_frame(uint16_t kind, const burst_post *post,
                               bool refused) {
  size_t pieces = post ? (size_t)post->num_pieces : 0;
  size_t payload =
      post ? sizeof(burst_label) + pieces * sizeof(burst_shape) : 0;
  size_t bytes = sizeof(burst_header) + payload;
  burst_frame *frame = calloc(1, sizeof(*frame) + bytes);
  if (!frame)
    return NULL;
  frame->bytes = bytes;
  burst_header header = burst_header_of(kind, payload);
  memcpy(frame->data, &header, sizeof(header));
  if (!post)
    return frame;
  burst_label label = {post->channel, post->hop, post->program,
                       post->num_pieces, refused};
  char *next = frame->data + sizeof(header);
  memcpy(next, &label, sizeof(label));
  next += sizeof(label);
  for (size_t i = 0; i < pieces; ++i, next += sizeof(burst_shape)) {
    burst_shape shape = {.element_bytes = post->pieces[i].element_bytes};
    memcpy(shape.sizes, post->pieces[i].sizes, sizeof(shape.sizes));
    memcpy(next, &shape, sizeof(shape));
  }
  return frame;
}

static burst_label label_of(const char *payload) {
  burst_label label;
  memcpy(&label, payload, sizeof(label));
  return label;
}

// What a payload says of the other side; its pieces are to be freed. False
// where it makes no sense, or there is no memory.
static bool read_post(const char *payload, size_t bytes, burst_post *post) {
  *post = (burst_post){0};
  if (bytes < sizeof(burst_label))
    return false;
  burst_label label = label_of(payload);
  if (label.num_pieces < 1 || label.num_pieces > BURST_MOST_PIECES ||
      bytes != sizeof(label) + (size_t)label.num_pieces * sizeof(burst_shape))
    return false;
  post->channel = label.channel;
  post->program = label.program;
  post->pieces = calloc((size_t)label.num_pieces, sizeof(burst_piece));
  if (!post->pieces)
    return false;
  post->num_pieces = label.num_pieces;
  for (int64_t i = 0; i < label.num_pieces; ++i) {
    burst_shape shape;
    burst_piece *piece = &post->pieces[i];
    memcpy(&shape, payload + sizeof(label) + (size_t)i * sizeof(burst_shape),
           sizeof(shape));
    piece->element_bytes = shape.element_bytes;
    memcpy(piece->sizes, shape.sizes, sizeof(shape.sizes));
    bool sensible = shape.element_bytes >= 1;
    for (int d = 0; d < 4; ++d)
      sensible &= shape.sizes[d] >= 1;
    int64_t of_piece = sensible ? burst_piece_bytes(piece) : -1;
    if (of_piece < 0 ||
        __builtin_add_overflow(post->bytes, of_piece, &post->bytes)) {
      free(post->pieces);
      return false;
    }
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

static void wake(const burst_tcp *tcp) {
  uint64_t one = 1;
  ssize_t written = write(tcp->wakes, &one, sizeof(one));
  (void)written; // fails only if it is awake already
}

static void refuse(burst_tcp *tcp, burst_tcp_side *side, burst_error *error) {
  side->state = BURST_TCP_REFUSED;
  side->post->refusal = error;
  pthread_cond_broadcast(&tcp->changed);
}

static void complete(burst_tcp *tcp, burst_tcp_side *side) {
  side->state = BURST_TCP_COMPLETE;
  side->ended = burst_now();
  pthread_cond_broadcast(&tcp->changed);
}

// Both sides of a message to a peer are there: what it wants, and what it gets.
static bool answer(burst_tcp *tcp, burst_link *link, burst_tcp_side *send,
                   const burst_frame *wanted) {
  burst_post other;
  if (!read_post(wanted->data, wanted->bytes, &other))
    return false;
  burst_error *error = burst_post_mismatch(send->post, &other);
  free(other.pieces);
  burst_frame *frame = make_frame(DATA, send->post, error != NULL);
  if (!frame) {
    burst_error_destroy(error);
    return false;
  }
  if (error) {
    refuse(tcp, send, error);
  } else {
    send->state = BURST_TCP_MOVING;
    send->began = burst_now();
    frame->side = send;
  }
  APPEND(link->frames, frame);
  return true;
}

static burst_tcp_side *find_side(burst_tcp_side *side, int64_t channel) {
  while (side && side->post->channel != channel)
    side = side->next;
  return side;
}

static bool post_send(burst_tcp *tcp, burst_link *link, burst_tcp_side *side) {
  burst_frame *wanted = link->wanted;
  while (wanted && label_of(wanted->data).channel != side->post->channel)
    wanted = wanted->next;
  if (!wanted) {
    APPEND(link->sends, side);
    return true;
  }
  REMOVE(link->wanted, wanted);
  bool answered = answer(tcp, link, side, wanted);
  free(wanted);
  return answered;
}

static bool post_receive(burst_link *link, burst_tcp_side *side) {
  burst_frame *frame = make_frame(WANTED, side->post, false);
  if (!frame)
    return false;
  APPEND(link->frames, frame);
  APPEND(link->receives, side);
  return true;
}

bool burst_tcp_post(burst_tcp *tcp, burst_post *post) {
  burst_tcp_side *side = post->state;
  burst_link *link = &tcp->links[post->peer];
  side->post = post;
  bool posted =
      post->receives ? post_receive(link, side) : post_send(tcp, link, side);
  wake(tcp);
  return posted;
}

void burst_tcp_say_goodbye(burst_tcp *tcp) {
  for (int64_t i = 0; i < tcp->transport.num_ranks; ++i) {
    burst_frame *frame = make_frame(GOODBYE, NULL, false);
    if (frame)
      APPEND(tcp->links[i].frames, frame);
  }
  wake(tcp);
}

void burst_tcp_forget(burst_tcp *tcp, const burst_tcp_side *side) {
  burst_link *link = &tcp->links[side->post->peer];
  REMOVE(link->sends, side);
  REMOVE(link->receives, side);
  for (burst_frame *frame = link->frames; frame; frame = frame->next)
    if (frame->side == side)
      frame->side = NULL;
  if (link->filled == side)
    link->filled = NULL;
}

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

// What is left of the data of a side, as much as one call takes.
static int list_rest(const burst_tcp_side *side, struct iovec *vectors) {
  int count = 0;
  int64_t stretch = side->stretch, offset = side->offset;
  for (int64_t i = side->piece; i < side->post->num_pieces; ++i) {
    burst_stretches all = burst_stretches_of(&side->post->pieces[i]);
    for (; stretch < all.count; ++stretch, offset = 0) {
      if (count == MOST_VECTORS)
        return count;
      vectors[count++] =
          (struct iovec){burst_stretch_at(&all, stretch) + offset,
                         (size_t)(all.bytes - offset)};
    }
    stretch = 0;
  }
  return count;
}

// True where that was the last of it.
static bool advance(burst_tcp_side *side, int64_t bytes) {
  while (side->piece < side->post->num_pieces) {
    burst_stretches all = burst_stretches_of(&side->post->pieces[side->piece]);
    int64_t left = all.bytes - side->offset;
    if (bytes < left) {
      side->offset += bytes;
      return false;
    }
    bytes -= left;
    side->offset = 0;
    if (++side->stretch == all.count) {
      side->stretch = 0;
      ++side->piece;
    }
  }
  return true;
}

// A connection that ended says who failed only if the world does not know
// better.
static void break_link(burst_link *link) {
  if (!link->left && !link->broken)
    link->broken = burst_now();
  if (link->in >= 0)
    close(link->in);
  if (link->out >= 0 && link->out != link->in)
    close(link->out);
  link->in = link->out = -1;
}

typedef enum outcome { MORE, NOTHING, ENDED, NONSENSE } outcome;

static outcome outcome_of(ssize_t moved) {
  if (moved > 0)
    return MORE;
  return moved < 0 && (errno == EAGAIN || errno == EINTR) ? NOTHING : ENDED;
}

static outcome write_part(burst_tcp *tcp, burst_link *link) {
  burst_frame *frame = link->frames;
  struct iovec vectors[MOST_VECTORS];
  struct msghdr message = {.msg_iov = vectors, .msg_iovlen = 1};
  if (frame->done < frame->bytes)
    vectors[0] =
        (struct iovec){frame->data + frame->done, frame->bytes - frame->done};
  else
    message.msg_iovlen = (size_t)list_rest(frame->side, vectors);
  ssize_t sent = sendmsg(link->out, &message, MSG_NOSIGNAL);
  outcome result = outcome_of(sent);
  if (result != MORE)
    return result;
  bool ended;
  if (frame->done < frame->bytes) {
    frame->done += (size_t)sent;
    ended = frame->done == frame->bytes && !frame->side;
  } else {
    ended = advance(frame->side, sent);
    if (ended)
      complete(tcp, frame->side);
  }
  if (ended) {
    link->frames = frame->next;
    free(frame);
  }
  return MORE;
}

static outcome read_data(burst_tcp *tcp, burst_link *link) {
  struct iovec vectors[MOST_VECTORS];
  ssize_t got = readv(link->in, vectors, list_rest(link->filled, vectors));
  outcome result = outcome_of(got);
  if (result == MORE && advance(link->filled, got)) {
    complete(tcp, link->filled);
    link->filled = NULL;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// What a peer says
//===----------------------------------------------------------------------===//

static bool hear_wanted(burst_tcp *tcp, burst_link *link) {
  burst_post other;
  if (!read_post(link->payload, link->header.bytes, &other))
    return false;
  free(other.pieces);
  burst_frame *wanted = calloc(1, sizeof(*wanted) + link->header.bytes);
  if (!wanted)
    return false;
  wanted->bytes = link->header.bytes;
  memcpy(wanted->data, link->payload, wanted->bytes);
  burst_tcp_side *send = find_side(link->sends, other.channel);
  if (!send) {
    APPEND(link->wanted, wanted);
    return true;
  }
  REMOVE(link->sends, send);
  bool answered = answer(tcp, link, send, wanted);
  free(wanted);
  return answered;
}

static bool hear_data(burst_tcp *tcp, burst_link *link) {
  burst_post other;
  if (!read_post(link->payload, link->header.bytes, &other))
    return false;
  burst_label label = label_of(link->payload);
  burst_tcp_side *receive = find_side(link->receives, label.channel);
  burst_error *error =
      receive ? burst_post_mismatch(receive->post, &other) : NULL;
  free(other.pieces);
  if (!receive || (error != NULL) != (label.refused != 0)) {
    burst_error_destroy(error);
    return false;
  }
  REMOVE(link->receives, receive);
  if (error) {
    refuse(tcp, receive, error);
    return true;
  }
  receive->state = BURST_TCP_MOVING;
  receive->began = burst_now();
  link->filled = receive;
  return true;
}

static bool hear(burst_tcp *tcp, burst_link *link) {
  switch (link->header.kind) {
  case WANTED:
    return hear_wanted(tcp, link);
  case DATA:
    return hear_data(tcp, link);
  default:
    link->left = true;
    burst_socket_acknowledge(link->in);
    pthread_cond_broadcast(&tcp->changed);
    return true;
  }
}

static bool is_sensible(const burst_header *header) {
  size_t most = sizeof(burst_label) + BURST_MOST_PIECES * sizeof(burst_shape);
  return header->magic == BURST_WIRE_MAGIC &&
         header->version == BURST_WIRE_VERSION &&
         (header->kind == GOODBYE
              ? header->bytes == 0
              : (header->kind == WANTED || header->kind == DATA) &&
                    header->bytes >= sizeof(burst_label) &&
                    header->bytes <= most);
}

static outcome read_part(burst_tcp *tcp, burst_link *link) {
  if (link->filled)
    return read_data(tcp, link);
  burst_header *header = &link->header;
  bool in_header = link->header_bytes < sizeof(*header);
  char *to = in_header ? (char *)header + link->header_bytes
                       : link->payload + link->payload_bytes;
  size_t wanted = in_header ? sizeof(*header) - link->header_bytes
                            : header->bytes - link->payload_bytes;
  ssize_t got = recv(link->in, to, wanted, 0);
  outcome result = outcome_of(got);
  if (result != MORE)
    return result;
  *(in_header ? &link->header_bytes : &link->payload_bytes) += (size_t)got;
  if (link->header_bytes < sizeof(*header))
    return MORE;
  if (in_header) {
    if (!is_sensible(header))
      return NONSENSE;
    link->payload = malloc(header->bytes + 1);
    if (!link->payload)
      return NONSENSE;
  }
  if (link->payload_bytes < header->bytes)
    return MORE;
  bool sensible = hear(tcp, link);
  free(link->payload);
  link->payload = NULL;
  link->header_bytes = link->payload_bytes = 0;
  return sensible ? MORE : NONSENSE;
}

void burst_tcp_free_link(burst_link *link) {
  link->left = true;
  break_link(link);
  free(link->payload);
  burst_frame **lists[] = {&link->wanted, &link->frames};
  for (int i = 0; i < 2; ++i)
    while (*lists[i]) {
      burst_frame *next = (*lists[i])->next;
      free(*lists[i]);
      *lists[i] = next;
    }
}

//===----------------------------------------------------------------------===//
// The thread
//===----------------------------------------------------------------------===//

// Moves what can be moved at once, up to some megabytes. False where a peer
// talks nonsense.
static bool move(burst_tcp *tcp, burst_link *link, short events) {
  outcome read = MORE, written = MORE;
  if (!(events & (POLLIN | POLLHUP | POLLERR)))
    read = NOTHING;
  for (int i = 0; i < 16 && (read == MORE || written == MORE); ++i) {
    if (read == MORE)
      read = read_part(tcp, link);
    if (read == NONSENSE)
      return false;
    written = NOTHING;
    if (link->frames && link->out >= 0 && read != ENDED)
      written = write_part(tcp, link);
    if (read == ENDED || written == ENDED) {
      break_link(link);
      return true;
    }
  }
  return true;
}

static void fail(burst_tcp *tcp, int64_t peer, burst_code code,
                 const char *sentence) {
  pthread_mutex_unlock(&tcp->mutex);
  burst_world_fail(tcp->transport.world, peer, code, sentence);
  pthread_mutex_lock(&tcp->mutex);
}

static void fail_nonsense(burst_tcp *tcp, int64_t peer) {
  char sentence[96];
  snprintf(sentence, sizeof(sentence),
           "rank %" PRId64 " sent what makes no sense", peer);
  fail(tcp, peer, BURST_PEER_STOPPED, sentence);
}

// The next time at which the world is told of a broken connection.
static int64_t check_broken(burst_tcp *tcp, int64_t now) {
  int64_t next = INT64_MAX;
  for (int64_t i = 0; i < tcp->transport.num_ranks && !tcp->ending; ++i) {
    int64_t broken = tcp->links[i].broken;
    if (broken && now - broken >= patience) {
      tcp->links[i].broken = 0;
      if (!burst_world_question(tcp->transport.world, i)) {
        tcp->links[i].left = true;
        pthread_cond_broadcast(&tcp->changed);
      }
    } else if (broken && broken + patience < next) {
      next = broken + patience;
    }
  }
  return next;
}

static bool all_arrived(const burst_tcp *tcp) {
  for (int64_t i = 0; i < tcp->transport.num_ranks; ++i) {
    const burst_link *link = &tcp->links[i];
    int unsent = 0;
    if (link->out >= 0 && i != tcp->transport.rank &&
        (link->frames ||
         (ioctl(link->out, SIOCOUTQ, &unsent) == 0 && unsent > 0)))
      return false;
  }
  return true;
}

static void poll_links(burst_tcp *tcp, int64_t deadline) {
  size_t count = (size_t)tcp->transport.num_ranks;
  struct pollfd *polled = tcp->polled;
  for (size_t i = 0; i < count; ++i) {
    const burst_link *link = &tcp->links[i];
    short writes = link->frames ? POLLOUT : 0;
    bool one = link->in == link->out;
    polled[2 * i] =
        (struct pollfd){link->in, (short)(POLLIN | (one ? writes : 0)), 0};
    polled[2 * i + 1] =
        (struct pollfd){one || !writes ? -1 : link->out, writes, 0};
  }
  polled[2 * count] = (struct pollfd){tcp->wakes, POLLIN, 0};
  pthread_mutex_unlock(&tcp->mutex);
  burst_poll_sparse(polled, 2 * count + 1, deadline);
  while (atomic_load(&tcp->hurried) > 0)
    sched_yield();
  pthread_mutex_lock(&tcp->mutex);
  uint64_t wakes;
  ssize_t drained = read(tcp->wakes, &wakes, sizeof(wakes));
  (void)drained; // nothing, if nobody woke it
}

static void move_all(burst_tcp *tcp) {
  for (int64_t i = 0; i < tcp->transport.num_ranks && !tcp->failed; ++i) {
    burst_link *link = &tcp->links[i];
    if (link->in < 0)
      continue;
    if (!move(tcp, link, tcp->polled[2 * i].revents)) {
      break_link(link);
      link->broken = 0;
      fail_nonsense(tcp, i);
    }
  }
}

void *burst_tcp_progress(void *context) {
  burst_tcp *tcp = context;
  int64_t end = INT64_MAX;
  pthread_mutex_lock(&tcp->mutex);
  while (!tcp->failed) {
    int64_t now = burst_now();
    if (tcp->ending && end == INT64_MAX)
      end = now + 2 * second;
    if (tcp->ending && (now >= end || all_arrived(tcp)))
      break;
    int64_t next = check_broken(tcp, now);
    int64_t later = now + 60 * second;
    if (tcp->ending)
      later = now + 1000000;
    poll_links(tcp, next < later ? next : later);
    move_all(tcp);
  }
  pthread_mutex_unlock(&tcp->mutex);
  return NULL;
}
