//===- Socket.h - Connections between processes -----------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sockets that do not block and are not inherited. Where a call fails without
// an error of burst's own it returns a number of errno: ETIMEDOUT where the
// wait is over, ECANCELED where it was called off.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_WORLD_SOCKET_H
#define BURST_RUNTIME_WORLD_SOCKET_H

#include "burst/burst.h"

#include <stdbool.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct burst_address {
  struct sockaddr_storage storage;
  socklen_t length;
} burst_address;

// "127.0.0.1:4000".
typedef struct burst_address_text {
  char text[64];
} burst_address_text;

// How long a call may wait: until a time of burst_now, or until a descriptor
// can be read; -1: none.
typedef struct burst_wait {
  int64_t deadline;
  int alarm;
} burst_wait;

// Where the name of this machine means an address that only this machine knows,
// as on Debian, it is that of its first interface.
burst_error *burst_address_resolve(const char *host, int64_t port,
                                   burst_address *address);
burst_address_text burst_address_print(const burst_address *address);
void burst_address_set_port(burst_address *address, int64_t port);
bool burst_address_is_loopback(const burst_address *address);
// Of this side of a socket, and of the other.
burst_address burst_socket_local(int fd);
burst_address burst_socket_remote(int fd);
int64_t burst_address_port(const burst_address *address);

// At this address alone; port 0 is any.
int burst_socket_listen(const burst_address *address, int *fd);
burst_error *burst_socket_cannot_listen(const burst_address *address,
                                        int failure);
// One attempt. Where nobody listens at a port of this machine that the system
// gives to connections, a socket may connect to itself: that counts as refused.
int burst_socket_connect(const burst_address *address, const burst_wait *wait,
                         int *fd);
// Begins one: EINPROGRESS, until the socket can be written or has failed.
int burst_socket_begin_connect(const burst_address *address, int *fd);
// How what was begun has ended.
int burst_socket_end_connect(int fd);
// A descriptor, or -1 and a number of errno, EAGAIN where nobody waits to be
// accepted.
int burst_socket_accept(int listener);

int burst_socket_send(int fd, const void *data, size_t bytes,
                      const burst_wait *wait);
// ECONNRESET also where the other side has ended the connection.
int burst_socket_receive(int fd, void *data, size_t bytes,
                         const burst_wait *wait);
// Says at once that all was received: the other side waits for that to end.
void burst_socket_acknowledge(int fd);

// Waits for any of the sockets, at most until the deadline.
struct pollfd;
void burst_poll_until(struct pollfd *polled, size_t count, int64_t deadline);
// The same for many that may be -1, which the system counts as open. Behind
// them is room for as many again.
void burst_poll_sparse(struct pollfd *polled, size_t count, int64_t deadline);
// 0 when one of the events has come.
int burst_socket_await(int fd, short events, const burst_wait *wait);

#ifdef __cplusplus
}
#endif

#endif // BURST_RUNTIME_WORLD_SOCKET_H
