//===- Socket.c - Connections between processes ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/world/Socket.h"
#include "burst/internal/error.h"
#include "runtime/src/base/Clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

// Hosts often call themselves 127.0.1.1, which to others is another machine.
static bool is_name_of_this_machine(const char *host,
                                    const burst_address *address) {
  struct in_addr number;
  const struct sockaddr_in *four =
      (const struct sockaddr_in *)&address->storage;
  return address->storage.ss_family == AF_INET &&
         burst_address_is_loopback(address) &&
         ntohl(four->sin_addr.s_addr) != INADDR_LOOPBACK &&
         inet_pton(AF_INET, host, &number) != 1;
}

// Leaves the address where this machine has no network.
static void take_first_interface(burst_address *address) {
  struct ifaddrs *all = NULL;
  if (getifaddrs(&all))
    return;
  for (const struct ifaddrs *one = all; one; one = one->ifa_next)
    if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET &&
        (one->ifa_flags & IFF_UP) && !(one->ifa_flags & IFF_LOOPBACK)) {
      memcpy(&address->storage, one->ifa_addr, sizeof(struct sockaddr_in));
      break;
    }
  freeifaddrs(all);
}

burst_error *burst_address_resolve(const char *host, int64_t port,
                                   burst_address *address) {
  struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
  struct addrinfo *found = NULL;
  memset(address, 0, sizeof(*address));
  int failure = getaddrinfo(host, NULL, &hints, &found);
  if (failure || !found)
    return burst_error_create(BURST_SYSTEM, "",
                              "world: cannot find the host \"%s\": %s", host,
                              failure ? gai_strerror(failure) : "no address");
  memcpy(&address->storage, found->ai_addr, found->ai_addrlen);
  address->length = found->ai_addrlen;
  freeaddrinfo(found);
  if (is_name_of_this_machine(host, address))
    take_first_interface(address);
  burst_address_set_port(address, port);
  return NULL;
}

void burst_address_set_port(burst_address *address, int64_t port) {
  if (address->storage.ss_family == AF_INET6)
    ((struct sockaddr_in6 *)&address->storage)->sin6_port =
        htons((uint16_t)port);
  else
    ((struct sockaddr_in *)&address->storage)->sin_port = htons((uint16_t)port);
}

int64_t burst_address_port(const burst_address *address) {
  if (address->storage.ss_family == AF_INET6)
    return ntohs(((const struct sockaddr_in6 *)&address->storage)->sin6_port);
  return ntohs(((const struct sockaddr_in *)&address->storage)->sin_port);
}

bool burst_address_is_loopback(const burst_address *address) {
  if (address->storage.ss_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(
        &((const struct sockaddr_in6 *)&address->storage)->sin6_addr);
  const struct sockaddr_in *four =
      (const struct sockaddr_in *)&address->storage;
  return ntohl(four->sin_addr.s_addr) >> 24 == 127;
}

burst_address_text burst_address_print(const burst_address *address) {
  burst_address_text text;
  char host[INET6_ADDRSTRLEN] = "?";
  bool six = address->storage.ss_family == AF_INET6;
  const void *bytes =
      six ? (const void *)&((const struct sockaddr_in6 *)&address->storage)
                ->sin6_addr
          : (const void *)&((const struct sockaddr_in *)&address->storage)
                ->sin_addr;
  inet_ntop(six ? AF_INET6 : AF_INET, bytes, host, sizeof(host));
  snprintf(text.text, sizeof(text.text), six ? "[%s]:%d" : "%s:%d", host,
           (int)burst_address_port(address));
  return text;
}

burst_address burst_socket_local(int fd) {
  burst_address address = {.length = sizeof(address.storage)};
  getsockname(fd, (struct sockaddr *)&address.storage, &address.length);
  return address;
}

burst_address burst_socket_remote(int fd) {
  burst_address address = {.length = sizeof(address.storage)};
  getpeername(fd, (struct sockaddr *)&address.storage, &address.length);
  return address;
}

//===----------------------------------------------------------------------===//
// Connections
//===----------------------------------------------------------------------===//

static int make_socket(const burst_address *address) {
  return socket(address->storage.ss_family,
                SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static void set_option(int fd, int level, int option) {
  int one = 1;
  setsockopt(fd, level, option, &one, sizeof(one));
}

// What is written is small and waited for.
static void hurry(int fd) { set_option(fd, IPPROTO_TCP, TCP_NODELAY); }

void burst_socket_acknowledge(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_QUICKACK);
}

int burst_socket_listen(const burst_address *address, int *fd) {
  *fd = make_socket(address);
  if (*fd < 0)
    return errno;
  set_option(*fd, SOL_SOCKET, SO_REUSEADDR);
  if (bind(*fd, (const struct sockaddr *)&address->storage, address->length) ==
          0 &&
      listen(*fd, SOMAXCONN) == 0)
    return 0;
  int failure = errno;
  close(*fd);
  *fd = -1;
  return failure;
}

burst_error *burst_socket_cannot_listen(const burst_address *address,
                                        int failure) {
  return burst_error_create(BURST_SYSTEM, "", "world: cannot listen at %s: %s",
                            burst_address_print(address).text,
                            strerror(failure));
}

void burst_poll_until(struct pollfd *polled, size_t count, int64_t deadline) {
  int64_t left = deadline - burst_now();
  int64_t milliseconds = left <= 0 ? 0 : left / 1000000 + 1;
  poll(polled, count, milliseconds > 1000000 ? 1000000 : (int)milliseconds);
}

void burst_poll_sparse(struct pollfd *polled, size_t count, int64_t deadline) {
  struct pollfd *dense = polled + count;
  size_t used = 0;
  for (size_t i = 0; i < count; ++i)
    if (polled[i].fd >= 0)
      dense[used++] = polled[i];
  burst_poll_until(dense, used, deadline);
  used = 0;
  for (size_t i = 0; i < count; ++i)
    if (polled[i].fd >= 0)
      polled[i].revents = dense[used++].revents;
}

int burst_socket_await(int fd, short events, const burst_wait *wait) {
  struct pollfd polled[] = {{fd, events, 0}, {wait->alarm, POLLIN, 0}};
  burst_poll_until(polled, 2, wait->deadline);
  if (polled[1].revents)
    return ECANCELED;
  return polled[0].revents == 0 && burst_now() >= wait->deadline ? ETIMEDOUT
                                                                 : 0;
}

// Closes without keeping the port for a minute, at which others may listen.
static void end_at_once(int fd) {
  struct linger at_once = {.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

static bool is_connected_to_itself(int fd) {
  burst_address local = burst_socket_local(fd),
                remote = burst_socket_remote(fd);
  return strcmp(burst_address_print(&local).text,
                burst_address_print(&remote).text) == 0;
}

int burst_socket_begin_connect(const burst_address *address, int *fd) {
  *fd = make_socket(address);
  if (*fd < 0)
    return errno;
  if (connect(*fd, (const struct sockaddr *)&address->storage,
              address->length) == 0 ||
      errno == EINPROGRESS)
    return EINPROGRESS;
  int failure = errno;
  close(*fd);
  *fd = -1;
  return failure;
}

int burst_socket_end_connect(int fd) {
  int failure = 0;
  socklen_t bytes = sizeof(failure);
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &bytes);
  if (!failure && is_connected_to_itself(fd)) {
    end_at_once(fd);
    failure = ECONNREFUSED;
  }
  if (!failure)
    hurry(fd);
  return failure;
}

int burst_socket_connect(const burst_address *address, const burst_wait *wait,
                         int *fd) {
  int failure = burst_socket_begin_connect(address, fd);
  if (failure != EINPROGRESS)
    return failure;
  failure = burst_socket_await(*fd, POLLOUT, wait);
  if (!failure)
    failure = burst_socket_end_connect(*fd);
  if (!failure)
    return 0;
  close(*fd);
  *fd = -1;
  return failure;
}

int burst_socket_accept(int listener) {
  int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd >= 0)
    hurry(fd);
  return fd;
}

int burst_socket_send(int fd, const void *data, size_t bytes,
                      const burst_wait *wait) {
  const char *next = data;
  while (bytes > 0) {
    ssize_t sent = send(fd, next, bytes, MSG_NOSIGNAL);
    if (sent > 0) {
      next += sent;
      bytes -= (size_t)sent;
    } else if (errno == EAGAIN || errno == EINTR) {
      int failure = burst_socket_await(fd, POLLOUT, wait);
      if (failure)
        return failure;
    } else {
      return errno;
    }
  }
  return 0;
}

int burst_socket_receive(int fd, void *data, size_t bytes,
                         const burst_wait *wait) {
  char *next = data;
  while (bytes > 0) {
    ssize_t received = recv(fd, next, bytes, 0);
    if (received > 0) {
      next += received;
      bytes -= (size_t)received;
    } else if (received == 0) {
      return ECONNRESET;
    } else if (errno == EAGAIN || errno == EINTR) {
      int failure = burst_socket_await(fd, POLLIN, wait);
      if (failure)
        return failure;
    } else {
      return errno;
    }
  }
  return 0;
}
