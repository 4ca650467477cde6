//===- Rank.c - A rank of tests over MPI ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rank WHAT... [SEED]: checks transports of its rank, one after the other; what
// is one of
//   messages, mismatch, deadline, stop   as burst_transport_check has them
//   twice        two transports, one after the other, and one of half the ranks
//   collectives  as messages; counts the calls of MPI that are for all of a
//   group leave        rank 0 destroys its transport while the others wait for
//   it level        with MPI_THREAD_FUNNELED; alone early        before
//   MPI_Init_thread; alone
// Prints "rank R: ok", or why not.
//
//===----------------------------------------------------------------------===//

#include "burst/burst.h"
#include "burst/mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank = -1, failures;

//===----------------------------------------------------------------------===//
// Calls of MPI, by its profiling interface
//===----------------------------------------------------------------------===//

static int splits, gathers, exchanges;

int MPI_Comm_split(MPI_Comm communicator, int color, int key, MPI_Comm *made) {
  ++splits;
  return PMPI_Comm_split(communicator, color, key, made);
}

int MPI_Iallgatherv(const void *sent, int count, MPI_Datatype type,
                    void *received, const int *counts, const int *starts,
                    MPI_Datatype of, MPI_Comm communicator,
                    MPI_Request *request) {
  ++gathers;
  return PMPI_Iallgatherv(sent, count, type, received, counts, starts, of,
                          communicator, request);
}

int MPI_Ialltoallv(const void *sent, const int *sent_counts,
                   const int *sent_starts, MPI_Datatype type, void *received,
                   const int *counts, const int *starts, MPI_Datatype of,
                   MPI_Comm communicator, MPI_Request *request) {
  ++exchanges;
  return PMPI_Ialltoallv(sent, sent_counts, sent_starts, type, received, counts,
                         starts, of, communicator, request);
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static void tell(const char *text) {
  failures += strcmp(text, "ok") != 0;
  printf("rank %d: %s\n", rank, text);
  fflush(stdout);
}

static void tell_error(burst_error *error) {
  tell(error ? burst_error_message(error) : "ok");
  burst_error_destroy(error);
}

static burst_transport *connect_to(MPI_Comm communicator) {
  burst_transport_table table = {.size = sizeof(table)};
  burst_transport_failure failure;
  burst_transport *transport = NULL;
  if (burst_mpi_transport(communicator, &table, &failure))
    tell(failure.message);
  else
    burst_error_destroy(burst_transport_create(&table, &transport));
  return transport;
}

static burst_error *check(burst_transport *transport, int64_t what,
                          int64_t seed) {
  burst_device *device;
  burst_device_config one = {.size = sizeof(one), .threads = 1};
  burst_error *error = burst_device_create_cpu(&one, &device);
  burst_check_config config = {.size = sizeof(config),
                               .transport = transport,
                               .device = device,
                               .what = what,
                               .seed = seed,
                               .deadline_seconds = 30};
  if (!error) {
    error = burst_transport_check(&config);
    burst_device_destroy(device);
  }
  return error;
}

static void check_twice(void) {
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  burst_transport *all = connect_to(MPI_COMM_WORLD), *some = connect_to(half);
  tell_error(check(some, BURST_CHECK_MESSAGES, rank % 2));
  tell_error(check(all, BURST_CHECK_MESSAGES, 3));
  burst_transport_destroy(some);
  burst_transport_destroy(all);
  all = connect_to(MPI_COMM_WORLD);
  tell_error(check(all, BURST_CHECK_MESSAGES, 4));
  burst_transport_destroy(all);
  MPI_Comm_free(&half);
}

static void check_what(const char *what, int64_t seed) {
  static const char *const names[] = {"messages", "mismatch", "deadline",
                                      "stop"};
  if (strcmp(what, "twice") == 0) {
    check_twice();
    return;
  }
  burst_transport *transport = connect_to(MPI_COMM_WORLD);
  if (strcmp(what, "leave") == 0 && rank == 0)
    tell("ok");
  else if (strcmp(what, "leave") == 0) // which waits for rank 0
    tell_error(check(transport, BURST_CHECK_STOP, seed));
  if (strcmp(what, "collectives") == 0) {
    tell_error(check(transport, BURST_CHECK_MESSAGES, seed));
    printf("rank %d: %d gathers, %d exchanges, %d splits\n", rank, gathers,
           exchanges, splits);
  }
  for (int64_t i = 0; i < 4; ++i)
    if (strcmp(what, names[i]) == 0)
      tell_error(check(transport, i, seed));
  burst_transport_destroy(transport);
}

int main(int argc, char **argv) {
  const char *first = argc > 1 ? argv[1] : "messages";
  int64_t seed = argc > 2 ? atoll(argv[argc - 1]) : 0;
  int level, wanted = strcmp(first, "level") == 0 ? MPI_THREAD_FUNNELED
                                                  : MPI_THREAD_SERIALIZED;
  if (strcmp(first, "early") == 0)
    connect_to(MPI_COMM_WORLD);
  MPI_Init_thread(&argc, &argv, wanted, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (strcmp(first, "early") == 0)
    tell("ok");
  else if (strcmp(first, "level") == 0)
    connect_to(MPI_COMM_WORLD);
  else
    for (int i = 1; i < argc && atoll(argv[i]) == 0; ++i)
      check_what(argv[i], seed);
  MPI_Finalize();
  return failures != 0;
}
