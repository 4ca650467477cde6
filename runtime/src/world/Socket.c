//===- Socket.c - Connections between processes ---------------------------===//

#include "Socket.h"
#include "../Clock.h"
#include "../Error.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
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

// Hosts often call themselves 127.0.1.1, and are known to others all the same.
static bool is_for_itself(const burst_address *address) {
  burst_address_text text = burst_address_print(address);
  return strncmp(text.text, "127.0.0.1:", 10) == 0 ||
         strncmp(text.text, "[::1]:", 6) == 0;
}

void burst_socket_acknowledge(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_QUICKACK);
}

burst_error *burst_socket_listen(const burst_address *address, int *fd) {
  burst_address bound = *address;
  if (!is_for_itself(address)) {
    if (address->storage.ss_family == AF_INET6)
      ((struct sockaddr_in6 *)&bound.storage)->sin6_addr = in6addr_any;
    else
      ((struct sockaddr_in *)&bound.storage)->sin_addr.s_addr =
          htonl(INADDR_ANY);
  }
  *fd = make_socket(&bound);
  if (*fd >= 0)
    set_option(*fd, SOL_SOCKET, SO_REUSEADDR);
  if (*fd >= 0 &&
      bind(*fd, (struct sockaddr *)&bound.storage, bound.length) == 0 &&
      listen(*fd, SOMAXCONN) == 0)
    return NULL;
  burst_error *error =
      burst_error_create(BURST_SYSTEM, "", "world: cannot listen at %s: %s",
                         burst_address_print(&bound).text, strerror(errno));
  if (*fd >= 0)
    close(*fd);
  *fd = -1;
  return error;
}

void burst_poll_until(struct pollfd *polled, size_t count, int64_t deadline) {
  int64_t left = deadline - burst_now();
  int64_t milliseconds = left <= 0 ? 0 : left / 1000000 + 1;
  poll(polled, count, milliseconds > 1000000 ? 1000000 : (int)milliseconds);
}

static int await(int fd, short events, int64_t deadline) {
  struct pollfd polled = {fd, events, 0};
  burst_poll_until(&polled, 1, deadline);
  return polled.revents == 0 && burst_now() >= deadline ? ETIMEDOUT : 0;
}

int burst_socket_connect(const burst_address *address, int64_t deadline,
                         int *fd) {
  int failure = 0;
  socklen_t bytes = sizeof(failure);
  *fd = make_socket(address);
  if (*fd < 0)
    return errno;
  if (connect(*fd, (const struct sockaddr *)&address->storage,
              address->length) != 0)
    failure = errno;
  if (failure == EINPROGRESS) {
    failure = await(*fd, POLLOUT, deadline);
    if (!failure)
      getsockopt(*fd, SOL_SOCKET, SO_ERROR, &failure, &bytes);
  }
  if (failure) {
    close(*fd);
    *fd = -1;
    return failure;
  }
  hurry(*fd);
  return 0;
}

int burst_socket_accept(int listener) {
  int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd >= 0)
    hurry(fd);
  return fd;
}

int burst_socket_send(int fd, const void *data, size_t bytes,
                      int64_t deadline) {
  const char *next = data;
  while (bytes > 0) {
    ssize_t sent = send(fd, next, bytes, MSG_NOSIGNAL);
    if (sent > 0) {
      next += sent;
      bytes -= (size_t)sent;
    } else if (errno == EAGAIN || errno == EINTR) {
      if (await(fd, POLLOUT, deadline))
        return ETIMEDOUT;
    } else {
      return errno;
    }
  }
  return 0;
}

int burst_socket_receive(int fd, void *data, size_t bytes, int64_t deadline) {
  char *next = data;
  while (bytes > 0) {
    ssize_t received = recv(fd, next, bytes, 0);
    if (received > 0) {
      next += received;
      bytes -= (size_t)received;
    } else if (received == 0) {
      return ECONNRESET;
    } else if (errno == EAGAIN || errno == EINTR) {
      if (await(fd, POLLIN, deadline))
        return ETIMEDOUT;
    } else {
      return errno;
    }
  }
  return 0;
}
