/*===- burst/transport.h - a transport of the host's own ---------*- C -*-===*\
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|* What an engine that carries messages between ranks fills in to be a        *|
|* transport: burst_transport_create (burst/burst.h) makes one of it, and     *|
|* burst_transport_check tries whether it keeps the rules below. This header  *|
|* needs no library.                                                          *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/
#ifndef BURST_TRANSPORT_H
#define BURST_TRANSPORT_H

#include "burst/program.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Why a function of a table failed: all zeros but for `peer`, -1, before the
   call. */
typedef struct burst_transport_failure {
  int64_t code; /* a burst_code; any other number counts as BURST_SYSTEM */
  int64_t peer; /* the rank with which the message was, or -1 */
  char message[1008]; /* ends with a zero */
} burst_transport_failure;

/* The messages of one start. All of it is valid during the call only, but what
   the pieces point to. */
typedef struct burst_transport_start {
  size_t size; /* of this struct: later versions add fields at its end */
  int64_t channel;
  int64_t hop;       /* the number of this start on its channel, from 1 on */
  uint64_t program;  /* that of the ranks which work together is the same */
  void *cuda_stream; /* of a table that reaches a GPU: the CUstream behind the
                        work of which, and in front of what is put on it later,
                        pieces are read and written; the GPU's context is
                        current in calls; else NULL */
  burst_messages messages; /* at least one, each of another rank and of at least
                              one piece with elements */
} burst_transport_start;

/* The memory in which pieces are. */
enum { BURST_REACHES_HOST = 0, BURST_REACHES_GPU = 1 };

/* A transport of one rank.

   Matching. A message is sent with a start of its source and received with one
   of its destination; of the messages with one source, destination and channel,
   the one that is sent first is received first. A start may have several of
   them, which are in the order of its list. Ranks that agree have in both lists
   the same number of pieces, of the same sizes; where they do not, who receives
   must fail with BURST_MISMATCH, and not succeed with part of the data or data
   of another message. An engine that never learns the sizes of the other side,
   as some that move data from GPU to GPU, relies on `program`.

   Progress. Nothing may be assumed of when the other side starts: `start`
   returns without waiting for it. A rank may have hundreds of starts under way,
   and waits for them in any order. The starts of compiled programs have one
   order on all ranks, whatever their channels are, and each has what a rank
   sends and what it receives: an engine may carry one after the other. Other
   programs may want that messages which are started on both sides are
   transferred whether or not earlier ones are.

   Memory. Pieces are the transport's from `start` until `wait` succeeds or
   `cancel` returns, to be read where a message goes, to be written where it
   comes. After that nothing may touch them, also where the engine has not heard
   of it: an engine that cannot take back what it was asked for copies. On a
   GPU, `wait` is for the copy to be on the stream.

   Failure. When a run fails, or its host says so, `abort` is called: all that
   this rank and the others wait for on this transport, now and later, must fail
   soon, with BURST_PEER_STOPPED and the reason. There is no way back.

   Threads. One run uses a transport at a time: `start`, `wait` and `cancel`
   come from one thread at a time, which may be another one in the next run.
   `abort` may come from any thread, also while one is in `wait`, and `destroy`
   when no other function is called any more.

   `start`, `wait` return 0 for success; else what they wrote to the failure is
   told as the error of the run, behind the rank and the hop. */
typedef struct burst_transport_table {
  size_t size;   /* of this struct, as in a config of burst/burst.h */
  void *context; /* goes to every function */
  int64_t rank, num_ranks;
  int64_t reaches; /* BURST_REACHES_HOST or BURST_REACHES_GPU */

  /* Begins messages. Sets `request` to what `wait` and `cancel` get for all of
     them; one of the two is called, once, if this succeeds. */
  int (*start)(void *context, const burst_transport_start *start,
               void **request, burst_transport_failure *failure);

  /* Returns when all messages of the request are there and gone; fails with
     BURST_DEADLINE_EXCEEDED after `seconds`. Where it fails, `cancel` is called
     next. */
  int (*wait)(void *context, void *request, double seconds,
              burst_transport_failure *failure);

  /* Gives a request up, behind `abort`. */
  void (*cancel)(void *context, void *request);

  /* Called once at most. `reason` is valid during the call. */
  void (*abort)(void *context, const char *reason);

  /* The last call; no request is open. NULL: nothing is to be done. */
  void (*destroy)(void *context);

  /* At the beginning of a run, on all ranks of the transport in one order:
     starts of the run will have patterns among the ranks of each group of this
     kind, so that an engine may connect them, once; what it does not do takes
     the messages as they are listed. Fails as `start` does, after `seconds` at
     most. NULL, and in tables that end before it: not wanted. */
  int (*prepare)(void *context, const burst_group *group, double seconds,
                 burst_transport_failure *failure);
} burst_transport_table;

#ifdef __cplusplus
}
#endif

#endif /* BURST_TRANSPORT_H */
