//===- Thread.h - Threads with room for kernels -----------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_BASE_THREAD_H
#define BURST_RUNTIME_BASE_THREAD_H

#include "burst/burst.h"

#include <pthread.h>

// Makes a thread with a stack on which kernels may keep their tiles; `what`
// says in an error which thread could not be made.
burst_error *burst_thread_create(const char *what, pthread_t *thread,
                                 void *(*run)(void *), void *context);

#endif // BURST_RUNTIME_BASE_THREAD_H
