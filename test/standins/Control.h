/*===- Control.h - What tests say to the emulated GPUs ------------*- C -*-===*\
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|* libburst-emulated-cuda.so stands for the driver of CUDA, and               *|
|* libburst-emulated-nccl.so for NCCL, where there is no GPU. The environment *|
|* says what is emulated:                                                     *|
|*                                                                            *|
|*   BURST_CUDA_DRIVER_LIBRARY, BURST_NCCL_LIBRARY  their paths, for burst    *|
|*   BURST_EMULATED_GPUS=1                how many                            *|
|*   BURST_EMULATED_CAPABILITY=80         compute capability, times 10        *|
|*   BURST_EMULATED_MEMORY=4294967296     bytes of each                       *|
|*   BURST_EMULATED_DRIVER_VERSION=13000  what cuDriverGetVersion says        *|
|*   BURST_EMULATED_SEED=0      0: all work is done as late as is legal, and  *|
|*                              warps run in turn; others: at random          *|
|*   BURST_EMULATED_RACES=1     0: accesses need not be ordered               *|
|*   BURST_EMULATED_PROCESSES=0 1: what waits for a value that no stream here *|
|*                              writes lets all others run first: for ranks   *|
|*                              in processes, each of which emulates its GPUs *|
|*   BURST_EMULATED_FAIL=       planted failures, separated by commas, each   *|
|*                              function[@gpu]:nth:result, see below          *|
|*   BURST_EMULATED_LOG=        a file to which reports are appended          *|
|*                                                                            *|
|* A report is a fault that was found: of a kernel by the emulator, or of     *|
|* operations that nothing orders. It goes to stderr, and all later calls for *|
|* that GPU fail. A process in which a report was not taken exits with 86.    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/
#ifndef BURST_TEST_STANDINS_CONTROL_H
#define BURST_TEST_STANDINS_CONTROL_H

#ifdef __cplusplus
extern "C" {
#endif

/* Forgets all GPUs and what they hold, and reads the environment again. No
   other thread may be in a call. */
void burst_emulated_reset(void);

/* The result that stands for: the call succeeds and what it asks for is never
   done. A stream that is to wait for an event does not. */
enum { BURST_EMULATED_NEVER = -1 };

/* Makes call number `nth`, counted from 1, of "cuMemAllocAsync" or "ncclSend"
   give a result, or "ncclSend@2" of those for GPU 2. */
void burst_emulated_fail(const char *function, int nth, int result);

/* The oldest report that was not taken, or null. Valid until the next call. */
const char *burst_emulated_take_report(void);

/* What exists: contexts held, streams, events, modules, pools, graphs, memory
   and communicators. */
int burst_emulated_alive(void);

#ifdef __cplusplus
}
#endif

#endif /* BURST_TEST_STANDINS_CONTROL_H */
