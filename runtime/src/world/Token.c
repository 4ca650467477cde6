//===- Token.c - What the ranks of a job know each other by ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/world/Token.h"
#include "burst/internal/error.h"
#include "runtime/src/base/NewFile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define INVALID(...)                                                           \
  burst_error_create(BURST_INVALID_ARGUMENT, "", "world: " __VA_ARGS__)

enum { DRAWN_BYTES = 32 };

typedef struct secret {
  size_t bytes;
  char text[4096];
} secret;

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

// "" where the user has no home.
static void find_path(char *path, size_t bytes) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int length = 0;
  path[0] = 0;
  if (cache && *cache)
    length = snprintf(path, bytes, "%s/burst/token", cache);
  else if (home && *home)
    length = snprintf(path, bytes, "%s/.cache/burst/token", home);
  if (length < 0 || (size_t)length >= bytes)
    path[0] = 0;
}

// The folders of a path, for this user alone where they are missing.
static void make_folders(const char *path) {
  char folder[PATH_MAX];
  for (const char *slash = strchr(path + 1, '/'); slash;
       slash = strchr(slash + 1, '/')) {
    snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
    mkdir(folder, 0700); // if it fails, making the file says so
  }
}

static bool draw(char *text) {
  unsigned char bytes[DRAWN_BYTES];
  if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
    return false;
  for (int i = 0; i < DRAWN_BYTES; ++i)
    sprintf(text + (size_t)i * 2, "%02x", bytes[i]);
  strcpy(text + (size_t)DRAWN_BYTES * 2, "\n");
  return true;
}

static int write_file(int fd) {
  char text[2 * DRAWN_BYTES + 2];
  if (!draw(text))
    return errno;
  size_t bytes = strlen(text);
  errno = 0;
  if (write(fd, text, bytes) != (ssize_t)bytes)
    return errno ? errno : ENOSPC;
  return fsync(fd) ? errno : 0;
}

// Where two make it at once, the first one's stays.
static int make_file(const char *path) {
  burst_new_file file;
  make_folders(path);
  int failure = burst_new_file_open(&file, path, 0600);
  if (failure)
    return failure;
  failure = write_file(file.descriptor);
  if (failure)
    burst_new_file_drop(&file);
  else
    failure = burst_new_file_keep(&file, /*replaces=*/false);
  return failure;
}

static burst_error *check_file(const char *path, const struct stat *status) {
  if (!S_ISREG(status->st_mode))
    return INVALID("%s is no regular file, wanted one with the token of "
                   "this user's jobs: remove it",
                   path);
  if (status->st_uid != geteuid())
    return INVALID("%s belongs to user %u, wanted %u: remove it, or set "
                   "BURST_TOKEN",
                   path, status->st_uid, geteuid());
  if (status->st_mode & 077)
    return INVALID("%s has mode %o, wanted 600: others could read or write "
                   "the token; remove it, and rank 0 makes another one",
                   path, status->st_mode & 0777);
  return NULL;
}

static void trim(secret *read) {
  while (read->bytes > 0 && strchr(" \t\r\n", read->text[read->bytes - 1]))
    --read->bytes;
}

// `failure` is a number of errno where there is no such file for this rank.
static burst_error *read_file(const char *path, secret *read, int *failure) {
  struct stat status;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  *failure = fd < 0 ? errno : 0;
  if (*failure)
    return NULL;
  burst_error *error = NULL;
  ssize_t got = -1;
  if (fstat(fd, &status) == 0) {
    error = check_file(path, &status);
    got = error ? 0 : pread(fd, read->text, sizeof(read->text), 0);
  }
  if (got < 0)
    error = burst_error_create(BURST_SYSTEM, "",
                               "world: cannot read the token %s: "
                               "%s",
                               path, strerror(errno));
  close(fd);
  if (error)
    return error;
  read->bytes = (size_t)got;
  trim(read);
  return read->bytes > 0 ? NULL
                         : INVALID("%s is empty, wanted a token: remove it, "
                                   "and rank 0 makes another one",
                                   path);
}

//===----------------------------------------------------------------------===//
// The secret
//===----------------------------------------------------------------------===//

static burst_error *take_variable(const char *value, secret *found) {
  size_t bytes = strlen(value);
  if (bytes == 0 || bytes > sizeof(found->text))
    return INVALID("BURST_TOKEN has %zu characters, wanted 1 to %zu: the same "
                   "secret on all ranks, or \"none\" where the network is "
                   "trusted",
                   bytes, sizeof(found->text));
  memcpy(found->text, value, bytes);
  found->bytes = bytes;
  return NULL;
}

static burst_error *without(const burst_address *address, const char *path,
                            int failure) {
  if (burst_address_is_loopback(address))
    return NULL;
  return INVALID("no token that the ranks of this job know each other by: "
                 "BURST_TOKEN is not set, and %s: %s; set BURST_TOKEN to the "
                 "same secret on all ranks, or to \"none\" where the network "
                 "is trusted; without, rank 0 must be at an address of this "
                 "machine alone such as 127.0.0.1, not at %s",
                 *path ? path : "neither is HOME", strerror(failure),
                 burst_address_print(address).text);
}

static burst_error *find_secret(const burst_place *place,
                                const burst_address *address, secret *found) {
  const char *value = getenv("BURST_TOKEN");
  if (value)
    return take_variable(value, found);
  char path[PATH_MAX];
  int failure = ENOENT, made = 0;
  burst_error *error = NULL;
  find_path(path, sizeof(path));
  if (*path)
    error = read_file(path, found, &failure);
  if (*path && failure == ENOENT && place->rank == 0) {
    made = make_file(path);
    error = read_file(path, found, &failure);
  }
  if (!error && failure)
    error = without(address, path, made ? made : failure);
  return error;
}

//===----------------------------------------------------------------------===//
// The token
//===----------------------------------------------------------------------===//

static void sign(const secret *known, const char *who, const burst_place *place,
                 unsigned char *digest) {
  char text[BURST_HOST_BYTES + 128];
  snprintf(text, sizeof(text), "burst %s\n%s\n%" PRId64 "\n%" PRId64 "\n", who,
           place->host, place->port, place->num_ranks);
  burst_hmac_sha256(known->text, known->bytes, text, strlen(text), digest);
}

burst_error *burst_token_find(const burst_place *place,
                              const burst_address *address,
                              burst_token *token) {
  secret known = {0};
  burst_error *error = find_secret(place, address, &known);
  if (!error) {
    sign(&known, "hello", place, token->hello);
    sign(&known, "answer", place, token->answer);
  }
  explicit_bzero(&known, sizeof(known));
  return error;
}

bool burst_token_equal(const unsigned char *a, const unsigned char *b) {
  volatile unsigned char differs = 0;
  for (int i = 0; i < BURST_SHA256_BYTES; ++i)
    differs |= a[i] ^ b[i];
  return differs == 0;
}
