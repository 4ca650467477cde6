//===- RunAll.c - Running all ranks on global tensors ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/config.h"
#include "burst/internal/error.h"
#include "burst/internal/tensor.h"
#include "runtime/src/base/Thread.h"
#include "runtime/src/device/Device.h"
#include "runtime/src/program/Bind.h"
#include "runtime/src/program/Program.h"
#include "runtime/src/run/Collect.h"
#include "runtime/src/run/Values.h"
#include "runtime/src/transport/Transport.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct ranks ranks;

typedef struct member {
  ranks *all;
  int64_t rank;
  pthread_t thread;
  burst_transport *transport;
  burst_counters *counters;
  burst_tensor *values; // shards, in memory of their own
  burst_error *error;
} member;

// All ranks of a run.
struct ranks {
  burst_program *program;
  burst_run_all_config config;
  const burst_tensor *globals;
  int64_t num_values;
  int64_t num_members;
  member *members;
  burst_tensor *values; // of all members
  burst_transport **transports;
};

//===----------------------------------------------------------------------===//
// One rank
//===----------------------------------------------------------------------===//

// Row by row, as the programs want it.
static burst_error *allocate(burst_tensor *tensor) {
  int64_t stride = 1;
  for (int32_t d = tensor->rank - 1; d >= 0; --d) {
    tensor->strides[d] = stride;
    stride *= tensor->sizes[d] ? tensor->sizes[d] : 1;
  }
  size_t bytes = (size_t)burst_tensor_bytes(tensor);
  void *data = NULL;
  if (posix_memalign(&data, 64, bytes + 1))
    return burst_error_no_memory(bytes);
  tensor->data = data;
  return NULL;
}

// The shape of a shard, without memory.
static burst_error *describe_shard(member *member, int64_t index) {
  const ranks *all = member->all;
  const burst_parameter *parameter =
      burst_program_parameter(all->program, index);
  burst_tensor *shard = &member->values[index];
  int32_t dim = parameter->shard_dim;
  burst_error *error = NULL;
  *shard = all->globals[index];
  shard->data = NULL;
  for (int32_t i = 0; i < parameter->num_splits; ++i)
    shard->sizes[parameter->splits[i].dim] /= parameter->splits[i].parts;
  if (dim >= 0) {
    int64_t extent = burst_extent_of(all->program, index, all->globals);
    error = burst_tensor_check_size("global", &all->globals[index], parameter,
                                    dim, extent);
    if (!error)
      error = burst_program_local_size(all->program, index, member->rank,
                                       extent, &shard->sizes[dim]);
  }
  return error;
}

static burst_error *make_shard(member *member, int64_t index) {
  const ranks *all = member->all;
  burst_tensor *shard = &member->values[index];
  burst_error *error = describe_shard(member, index);
  if (!error)
    error = allocate(shard);
  if (!error && !burst_program_parameter(all->program, index)->is_result)
    error = burst_shard(all->program, index, member->rank, &all->globals[index],
                        shard);
  return error;
}

static burst_error *run_member(member *member) {
  const ranks *all = member->all;
  burst_error *error = NULL;
  for (int64_t i = 0; i < all->num_values && !error; ++i)
    error = make_shard(member, i);
  burst_run_config config = {
      .size = sizeof(config),
      .rank = member->rank,
      .device = all->config.device,
      .transport = member->transport,
      .deadline_seconds = all->config.deadline_seconds,
      .trace = all->config.trace,
      .checked = all->config.checked,
  };
  if (error)
    return error;
  return config.device && burst_device_cuda(config.device)
             ? burst_cuda_run_values(all->program, &config, member->values,
                                     all->num_values, member->counters)
             : burst_run(all->program, &config, member->values, all->num_values,
                         member->counters);
}

static void *run_thread(void *context) {
  member *member = context;
  member->error = run_member(member);
  // Also of what went wrong before the run knew its transport.
  if (member->error)
    burst_transport_stop(member->transport, burst_error_message(member->error));
  return NULL;
}

//===----------------------------------------------------------------------===//
// One rank here, the others elsewhere
//===----------------------------------------------------------------------===//

static burst_error *make_results(member *member, bool has_memory) {
  const ranks *all = member->all;
  burst_error *error = NULL;
  for (int64_t i = burst_program_num_arguments(all->program);
       i < all->num_values && !error; ++i)
    error = has_memory ? make_shard(member, i) : describe_shard(member, i);
  return error;
}

// The results of all ranks, and what they counted, to rank 0.
static burst_error *collect(ranks *all, burst_counters *counted) {
  int64_t first = burst_program_num_arguments(all->program);
  int64_t own = all->config.transport->rank;
  int64_t count = all->num_values - first + 1;
  burst_error *error = NULL;
  for (int64_t rank = 0; rank < all->num_members && !error; ++rank)
    if (rank != own)
      error = make_results(&all->members[rank], own == 0);
  size_t bytes = (size_t)(all->num_members * count) * sizeof(burst_span);
  burst_span *spans = error ? NULL : malloc(bytes);
  if (!error && !spans)
    error = burst_error_no_memory(bytes);
  if (error) {
    burst_transport_stop(all->config.transport, burst_error_message(error));
    return error;
  }
  for (int64_t rank = 0; rank < all->num_members; ++rank) {
    burst_span *of_rank = spans + rank * count;
    for (int64_t i = first; i < all->num_values; ++i) {
      const burst_tensor *value = &all->members[rank].values[i];
      of_rank[i - first] = (burst_span){value->data, burst_tensor_bytes(value)};
    }
    of_rank[count - 1] = (burst_span){&counted[rank], sizeof(*counted)};
  }
  const burst_run_config config = {.size = sizeof(config),
                                   .rank = own,
                                   .device = all->config.device,
                                   .transport = all->config.transport,
                                   .deadline_seconds =
                                       all->config.deadline_seconds};
  error = burst_collect(&config, all->num_members, count, spans);
  free(spans);
  return error;
}

static burst_error *run_here(ranks *all, burst_counters *counters) {
  size_t bytes = (size_t)all->num_members * sizeof(burst_counters);
  burst_counters *counted = calloc(1, bytes);
  if (!counted)
    return burst_error_no_memory(bytes);
  member *own = &all->members[all->config.transport->rank];
  counted[own->rank].size = sizeof(*counted);
  own->counters = &counted[own->rank];
  own->transport = all->config.transport;
  burst_error *error = run_member(own);
  if (error)
    burst_transport_stop(own->transport, burst_error_message(error));
  else
    error = collect(all, counted);
  for (int64_t rank = 0;
       counters && !error && own->rank == 0 && rank < all->num_members;
       ++rank) {
    burst_counters *to =
        (burst_counters *)((char *)counters + (size_t)rank * counters->size);
    counted[rank].size = to->size;
    memcpy(to, &counted[rank], to->size);
  }
  free(counted);
  return error;
}

//===----------------------------------------------------------------------===//
// All ranks
//===----------------------------------------------------------------------===//

static void run_members(ranks *all) {
  int64_t started = 0;
  for (; started < all->num_members; ++started) {
    member *member = &all->members[started];
    // The thread writes the member's error from its first moment on.
    burst_error *error =
        burst_thread_create("a rank", &member->thread, run_thread, member);
    if (error) {
      burst_transport_stop(member->transport, burst_error_message(error));
      member->error = error;
      break;
    }
  }
  for (int64_t i = 0; i < started; ++i)
    pthread_join(all->members[i].thread, NULL);
}

// The error that caused the others; the others are destroyed.
static burst_error *take_error(ranks *all) {
  burst_error *cause = NULL;
  for (int64_t i = 0; i < all->num_members; ++i) {
    burst_error *error = all->members[i].error;
    bool better =
        error && (!cause || (burst_error_code(cause) == BURST_PEER_STOPPED &&
                             burst_error_code(error) != BURST_PEER_STOPPED));
    burst_error_destroy(better ? cause : error);
    if (better)
      cause = error;
  }
  return cause;
}

static burst_error *gather(const ranks *all) {
  burst_error *error = NULL;
  for (int64_t i = burst_program_num_arguments(all->program);
       i < all->num_values && !error; ++i) {
    const burst_parameter *parameter = burst_program_parameter(all->program, i);
    bool same = parameter->shard_dim < 0 && !parameter->is_partial;
    int64_t holders = same ? 1 : all->num_members;
    for (int64_t rank = 0; rank < holders && !error; ++rank)
      error = burst_gather(all->program, i, rank, &all->members[rank].values[i],
                           &all->globals[i]);
  }
  return error;
}

static burst_error *make_transports(ranks *all) {
  size_t members = (size_t)all->num_members;
  all->transports = calloc(members, sizeof(burst_transport *));
  if (!all->transports)
    return burst_error_no_memory(members * sizeof(burst_transport *));
  burst_local_config config = {
      .size = sizeof(config),
      .num_ranks = all->num_members,
      .latency_seconds = all->config.latency_seconds,
      .bytes_per_second = all->config.bytes_per_second,
      .checked = all->config.checked,
  };
  return burst_transport_create_local(&config, all->transports);
}

static burst_error *make_members(ranks *all, burst_counters *counters) {
  size_t members = (size_t)all->num_members;
  burst_error *error = all->config.transport ? NULL : make_transports(all);
  if (error)
    return error;
  // Not so many that this overflows: the transport refuses them.
  size_t values = members * (size_t)all->num_values;
  all->members = calloc(members, sizeof(member));
  all->values = calloc(values + 1, sizeof(burst_tensor));
  if (!all->members || !all->values)
    return burst_error_no_memory(members * sizeof(member) +
                                 values * sizeof(burst_tensor));
  for (int64_t i = 0; i < all->num_members; ++i) {
    member *made = &all->members[i];
    made->all = all;
    made->rank = i;
    made->transport = all->transports ? all->transports[i] : NULL;
    made->values = all->values + i * all->num_values;
    if (counters)
      made->counters =
          (burst_counters *)((char *)counters + (size_t)i * counters->size);
  }
  return NULL;
}

static void free_members(ranks *all) {
  for (int64_t i = 0; all->values && i < all->num_members * all->num_values;
       ++i)
    free(all->values[i].data);
  for (int64_t i = 0; all->transports && i < all->num_members; ++i)
    burst_transport_destroy(all->transports[i]);
  free(all->members);
  free(all->values);
  free(all->transports);
}

burst_error *burst_run_all(burst_program *program,
                           const burst_run_all_config *given,
                           const burst_tensor *globals, int64_t count,
                           burst_counters *counters) {
  BURST_REQUIRE_HANDLE(program, BURST_KIND_PROGRAM);
  if (count > 0)
    BURST_REQUIRE(globals);
  ranks all = {.program = program,
               .globals = globals,
               .num_values = count,
               .num_members = burst_program_num_ranks(program)};
  burst_error *error =
      burst_config_read("burst_run_all_config", &all.config, sizeof(all.config),
                        given, BURST_COVERS(burst_run_all_config, device));
  if (!error && count != burst_program_num_parameters(program))
    error = burst_error_create(BURST_INVALID_ARGUMENT, "",
                               "%s: %" PRId64 " values, wanted %" PRId64,
                               burst_program_name(program), count,
                               burst_program_num_parameters(program));
  if (!error && counters)
    error = burst_size_check("burst_counters", counters, sizeof(*counters),
                             sizeof(size_t));
  if (!error)
    error = burst_values_check(program, "global", globals);
  if (error)
    return error;
  BURST_CHECK(all.config.transport, BURST_KIND_TRANSPORT);
  const burst_transport *transport = all.config.transport;
  if (transport && transport->num_ranks != all.num_members)
    return burst_error_create(
        BURST_INVALID_ARGUMENT, "",
        "%s: a transport of %" PRId64 " ranks, wanted %" PRId64,
        burst_program_name(program), transport->num_ranks, all.num_members);
  if (transport &&
      (all.config.latency_seconds != 0 || all.config.bytes_per_second != 0))
    return burst_error_create(BURST_INVALID_ARGUMENT, "",
                              "burst_run_all: latency_seconds and "
                              "bytes_per_second are for ranks that are "
                              "threads, and there is a transport");
  error = make_members(&all, counters);
  if (!error && transport) {
    error = run_here(&all, counters);
  } else if (!error) {
    run_members(&all);
    error = take_error(&all);
  }
  if (!error && (!transport || transport->rank == 0))
    error = gather(&all);
  free_members(&all);
  return error;
}
