//===- Socket.h - Connections between processes -----------------*- C -*-===//
//
// Sockets that do not block and are not inherited. Where a call fails without
// an error of burst's own it returns a number of errno; ETIMEDOUT is the
// deadline, a time of burst_now.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_WORLD_SOCKET_H
#define BURST_RUNTIME_WORLD_SOCKET_H

#include "burst/burst.h"

#include <stdbool.h>
#include <sys/socket.h>

typedef struct burst_address {
  struct sockaddr_storage storage;
  socklen_t length;
} burst_address;

// "127.0.0.1:4000".
typedef struct burst_address_text {
  char text[64];
} burst_address_text;

burst_error *burst_address_resolve(const char *host, int64_t port,
                                   burst_address *address);
burst_address_text burst_address_print(const burst_address *address);
void burst_address_set_port(burst_address *address, int64_t port);
bool burst_address_is_loopback(const burst_address *address);
// Of this side of a socket, and of the other.
burst_address burst_socket_local(int fd);
burst_address burst_socket_remote(int fd);
int64_t burst_address_port(const burst_address *address);

// At the address if it is "localhost", else at its port on all interfaces; port
// 0 is any. `fd` is -1 on failure.
burst_error *burst_socket_listen(const burst_address *address, int *fd);
// One attempt.
int burst_socket_connect(const burst_address *address, int64_t deadline,
                         int *fd);
// -1 where nobody waits to be accepted.
int burst_socket_accept(int listener);

int burst_socket_send(int fd, const void *data, size_t bytes, int64_t deadline);
// ECONNRESET also where the other side has ended the connection.
int burst_socket_receive(int fd, void *data, size_t bytes, int64_t deadline);
// Says at once that all was received: the other side waits for that to end.
void burst_socket_acknowledge(int fd);

// Waits for any of the sockets, at most until the deadline.
struct pollfd;
void burst_poll_until(struct pollfd *polled, size_t count, int64_t deadline);

#endif // BURST_RUNTIME_WORLD_SOCKET_H
