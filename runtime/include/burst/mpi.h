/*===- burst/mpi.h - a transport over MPI ------------------------*- C -*-===*\
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|* Of libburst_mpi, a library of its own that is linked to MPI and to nothing *|
|* of burst: it fills in the table of burst/transport.h.                      *|
|*                                                                            *|
|*     MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);          *|
|*     burst_transport_table table = {sizeof(table)};                         *|
|*     burst_transport_failure failure;                                       *|
|*     if (burst_mpi_transport(MPI_COMM_WORLD, &table, &failure))             *|
|*       fail(failure.message);                                               *|
|*     burst_transport *transport;                                            *|
|*     burst_transport_create(&table, &transport);                            *|
|*     ...                                                                    *|
|*     burst_transport_destroy(transport);                                    *|
|*     MPI_Finalize();                                                        *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/
#ifndef BURST_MPI_H
#define BURST_MPI_H

#include "burst/transport.h"

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fills in the table of this rank, for shards in the host's memory, between the
   ranks of a communicator. Collective, and so is to destroy the transport,
   which waits for the other ranks, at most for 10 seconds. The communicator is
   duplicated, and not used any more. Returns 0, or 1 and why; `table->size` is
   set by the caller.

   MPI has to be initialized with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE.
   With the first, the host makes no call of MPI while a run, or
   burst_transport_stop, may; all calls of this library are one at a time.

   Messages are nonblocking sends and receives. A gather of all shards is an
   MPI_Iallgatherv and an all-to-all an MPI_Ialltoallv, where what a rank sends
   or receives has at most 2^30 bytes; those along some of a grid's axes are on
   a communicator that MPI_Comm_split makes, at the beginning of the first run
   that has them: it waits for all ranks and keeps other transports of the
   process from MPI meanwhile, so ranks that run programs on several transports
   at once begin the first runs in one order. Messages of
   more than 2^30 bytes go in several. What MPI reads and writes is memory of
   the library's own: of a run that failed it is never freed, for MPI cannot be
   made to let go of it. The transport of such a run stays unusable, and its
   communicators are not freed: end the job with MPI_Abort, or without
   MPI_Finalize, which may wait for the ranks that are stuck. */
int burst_mpi_transport(MPI_Comm communicator, burst_transport_table *table,
                        burst_transport_failure *failure);

/* The same for a handle as MPI_Comm_c2f gives it, which is a number in every
   MPI: for bindings. */
int burst_mpi_transport_of(int communicator, burst_transport_table *table,
                           burst_transport_failure *failure);

/* Writes to `all`, in the order of the ranks, the `bytes` bytes, at most 2^30,
   that each rank of a table of this library has at `mine`: equally many on all
   of them. Collective, between runs. Fails where a rank has stopped or left, or
   does not come for `seconds`. */
int burst_mpi_gather(const burst_transport_table *table, const void *mine,
                     int64_t bytes, void *all, double seconds,
                     burst_transport_failure *failure);

/* For hosts that load this library and are not linked to MPI: a transport of
   all ranks that the launcher has started, and the end of MPI. The first
   initializes MPI, unless it is; the second finalizes it where the first has
   initialized it, when all transports are destroyed. */
int burst_mpi_open(burst_transport_table *table,
                   burst_transport_failure *failure);
void burst_mpi_close(void);

#ifdef __cplusplus
}
#endif

#endif /* BURST_MPI_H */
