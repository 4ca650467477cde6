//===- Descriptors.c - Whether a world can open what it needs -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/world/Descriptors.h"
#include "burst/internal/error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

void burst_descriptors_raise(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
    return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit); // if it fails, what there is may suffice
}

// Opens them: who else has files open is not known otherwise.
bool burst_descriptors_suffice(int64_t count) {
  int *opened = malloc((size_t)count * sizeof(int));
  int64_t made = 0;
  if (!opened)
    return true; // which is not for want of descriptors
  int first = open("/dev/null", O_RDONLY | O_CLOEXEC);
  while (first >= 0 && made < count - 1 &&
         (opened[made] = fcntl(first, F_DUPFD_CLOEXEC, 0)) >= 0)
    ++made;
  for (int64_t i = 0; i < made; ++i)
    close(opened[i]);
  if (first >= 0)
    close(first);
  free(opened);
  return first >= 0 && made == count - 1;
}

burst_descriptors_text burst_descriptors_explain(int64_t rank,
                                                 int64_t num_ranks) {
  burst_descriptors_text made;
  struct rlimit limit = {0};
  getrlimit(RLIMIT_NOFILE, &limit);
  snprintf(made.text, sizeof(made.text),
           "rank %" PRId64 " has too many open files (limit %" PRIu64
           ", needed about 2 P + %d = %" PRId64 " for P = %" PRId64
           " ranks, beside those of the host): raise it with ulimit -Hn",
           rank, (uint64_t)limit.rlim_cur, BURST_MORE_DESCRIPTORS,
           2 * num_ranks + BURST_MORE_DESCRIPTORS, num_ranks);
  return made;
}

burst_error *burst_descriptors_error(const char *what, int64_t rank,
                                     int64_t num_ranks) {
  if (errno == EMFILE || errno == ENFILE)
    return burst_error_create(BURST_SYSTEM, "", "world: %s",
                              burst_descriptors_explain(rank, num_ranks).text);
  return burst_error_create(BURST_SYSTEM, "", "world: cannot make %s: %s", what,
                            strerror(errno));
}
