//===- Run.c - Running a program on one rank ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/run/Run.h"
#include "burst/internal/config.h"
#include "burst/internal/error.h"
#include "burst/internal/hash.h"
#include "runtime/src/base/View.h"
#include "runtime/src/device/Device.h"
#include "runtime/src/device/cuda/Device.h"
#include "runtime/src/program/Bind.h"
#include "runtime/src/program/Program.h"
#include "runtime/src/run/Rank.h"
#include "runtime/src/world/World.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const double default_deadline = 600;

//===----------------------------------------------------------------------===//
// Checks of the call
//===----------------------------------------------------------------------===//

#define INVALID(...) burst_error_create(BURST_INVALID_ARGUMENT, "", __VA_ARGS__)

static void check_handles(const burst_run_config *config) {
  BURST_CHECK(config->device, BURST_KIND_DEVICE);
  BURST_CHECK(config->stream, BURST_KIND_STREAM);
  BURST_CHECK(config->transport, BURST_KIND_TRANSPORT);
  BURST_CHECK(config->trace, BURST_KIND_TRACE);
}

static burst_error *check_device(burst_run_config *config) {
  check_handles(config);
  if (config->stream) {
    burst_device *device = burst_stream_device(config->stream);
    if (config->device && config->device != device)
      return INVALID("burst_run: the stream is of another device");
    config->device = device;
  }
  return config->device ? NULL : INVALID("burst_run: no device, no stream");
}

static burst_error *check_transport(const burst_image *image,
                                    const burst_run_config *config) {
  const burst_transport *transport = config->transport;
  if (config->rank < 0 || config->rank >= image->num_ranks)
    return INVALID("%s: rank %" PRId64 ", wanted 0 to %" PRId64, image->name,
                   config->rank, image->num_ranks - 1);
  if (!transport)
    return image->num_ranks == 1
               ? NULL
               : INVALID("%s: no transport, wanted one of %" PRId64 " ranks",
                         image->name, image->num_ranks);
  if (transport->num_ranks != image->num_ranks)
    return INVALID("%s: a transport of %" PRId64 " ranks, wanted %" PRId64,
                   image->name, transport->num_ranks, image->num_ranks);
  if (transport->rank != config->rank)
    return INVALID("%s: the transport of rank %" PRId64
                   ", wanted that of rank %" PRId64,
                   image->name, transport->rank, config->rank);
  return NULL;
}

static burst_error *check_program(const burst_image *image,
                                  const burst_run_config *config) {
  const burst_cuda *cuda = burst_device_cuda(config->device);
  if (cuda && config->trace)
    return INVALID("%s: a trace of a run on a GPU, where nothing is recorded: "
                   "leave it out",
                   image->name);
  if (cuda)
    return burst_cuda_check(cuda, image);
  return image->minimum_driver == 0
             ? NULL
             : INVALID("%s: a program for GPUs, the device is a CPU: run it on "
                       "a device of burst_device_create_cuda",
                       image->name);
}

static burst_error *check(burst_program *program, burst_run_config *config,
                          int64_t count, const burst_counters *counters) {
  const burst_image *image = program->image;
  burst_error *error = check_device(config);
  if (!error)
    error = check_program(image, config);
  if (!error)
    error = check_transport(image, config);
  if (!error)
    error = burst_number_check("burst_run: deadline_seconds",
                               config->deadline_seconds);
  if (!error && counters)
    error = burst_size_check("burst_counters", counters, sizeof(*counters),
                             sizeof(size_t));
  if (!error && count != image->num_parameters)
    error = INVALID("%s: %" PRId64 " values, wanted %d", image->name, count,
                    image->num_parameters);
  return error;
}

//===----------------------------------------------------------------------===//
// Executing the call
//===----------------------------------------------------------------------===//

static void write_counters(burst_counters *to, burst_counters *from) {
  from->size = to->size;
  memcpy(to, from, to->size);
}

static burst_error *poison_results(const burst_call *call) {
  const burst_image *image = call->program->image;
  if (call->cuda)
    return burst_cuda_poison_results(call->cuda);
  for (int32_t i = image->num_arguments; i < image->num_parameters; ++i) {
    burst_view view = burst_view_of_tensor(&call->values[i]);
    burst_view_fill(&view, BURST_POISON);
  }
  return NULL;
}

static burst_error *bind(const burst_call *call, burst_binding **binding) {
  const burst_cuda *cuda = burst_device_cuda(call->config.device);
  burst_error *error =
      burst_binding_create(call->program, call->config.rank, call->values,
                           cuda ? (void *)cuda->nothing : NULL, binding);
  if (error || !cuda)
    return error;
  error = burst_cuda_check_values(cuda, call->program->image, call->values);
  if (error)
    burst_binding_destroy(*binding);
  call->cuda->bound = !error;
  return error;
}

static void mix(uint64_t *hash, uint64_t value) {
  *hash = burst_hash(*hash, &value, sizeof(value));
}

// Of all that has to be the same on all ranks: the program, and what its
// schedule and its messages depend on.
static uint64_t plan_of(const burst_image *image, const burst_tensor *values) {
  uint64_t hash = BURST_HASH_BEGIN;
  mix(&hash, image->hash);
  mix(&hash, (uint64_t)image->num_ranks);
  for (int32_t i = 0; i < image->num_parameters; ++i) {
    const burst_parameter *parameter = &image->parameters[i];
    if (parameter->kind == BURST_EXTENT)
      mix(&hash, *(const uint64_t *)values[i].data);
    for (int32_t d = 0; d < values[i].rank; ++d)
      if (d != parameter->shard_dim)
        mix(&hash, (uint64_t)values[i].sizes[d]);
  }
  return hash;
}

// Images that end before them have no groups.
static burst_error *prepare(const burst_call *call) {
  const burst_image *image = call->program->image;
  return image->size < BURST_COVERS(burst_image, groups)
             ? NULL
             : burst_transport_prepare(call->config.transport, image->groups,
                                       image->num_groups,
                                       call->config.deadline_seconds);
}

// Of a rank that is a process: tells the others, and compares plans.
static burst_error *begin(const burst_call *call) {
  burst_world *world =
      call->config.transport ? call->config.transport->world : NULL;
  burst_error *error =
      world ? burst_world_begin_run(world,
                                    plan_of(call->program->image, call->values),
                                    call->config.deadline_seconds)
            : NULL;
  return error ? error : prepare(call);
}

static void end(const burst_call *call) {
  if (call->config.transport && call->config.transport->world)
    burst_world_end_run(call->config.transport->world);
}

static burst_error *run(burst_call *call, burst_counters *counters) {
  const burst_run_config *config = &call->config;
  burst_binding *binding;
  burst_error *error = bind(call, &binding);
  if (!error) {
    error = begin(call);
    if (error)
      burst_binding_destroy(binding);
  }
  if (error) {
    burst_transport_stop(call->config.transport, burst_error_message(error));
    return error;
  }
  burst_rank rank = {
      .image = call->program->image,
      .index = config->rank,
      .device = config->device,
      .cuda = call->cuda,
      .transport = config->transport,
      .deadline_seconds = config->deadline_seconds,
      .trace = config->trace,
      .checked = config->checked != 0,
  };
  error = rank.checked ? poison_results(call) : NULL;
  if (error)
    burst_transport_stop(call->config.transport, burst_error_message(error));
  else
    error = burst_rank_run(&rank, burst_binding_values(binding));
  end(call);
  burst_binding_destroy(binding);
  *counters = rank.counters;
  counters->tensor_bytes = burst_binding_bytes(call->program, call->values);
  if (__builtin_add_overflow(counters->peak_sum, counters->tensor_bytes,
                             &counters->peak_total))
    counters->peak_total = INT64_MAX;
  return error;
}

burst_error *burst_call_run(burst_call *call) {
  burst_counters counters = {0};
  burst_transport *transport = call->config.transport;
  // Not a reason to stop the run that uses it.
  if (transport && atomic_flag_test_and_set(&transport->in_use))
    return INVALID("%s: the transport of rank %" PRId64
                   " is in use by another run",
                   call->program->image->name, transport->rank);
  burst_error *error = run(call, &counters);
  if (transport)
    atomic_flag_clear(&transport->in_use);
  if (call->counters)
    write_counters(call->counters, &counters);
  return error;
}

// A GPU has streams only: one for this call. Takes the call.
static burst_error *run_on_gpu(burst_call *call) {
  burst_stream *stream;
  burst_error *error = burst_stream_create(call->config.device, &stream);
  if (error) {
    burst_transport_stop(call->config.transport, burst_error_message(error));
    burst_call_destroy(call);
    return error;
  }
  burst_stream_push(stream, call);
  error = burst_stream_synchronize(stream);
  burst_stream_destroy(stream);
  return error;
}

burst_error *burst_run(burst_program *program, const burst_run_config *given,
                       const burst_tensor *values, int64_t count,
                       burst_counters *counters) {
  BURST_REQUIRE_HANDLE(program, BURST_KIND_PROGRAM);
  if (count > 0)
    BURST_REQUIRE(values);
  burst_run_config config;
  burst_error *error = burst_config_read("burst_run_config", &config,
                                         sizeof(config), given, sizeof(size_t));
  if (!error)
    error = check(program, &config, count, counters);
  if (error)
    return error;
  if (config.deadline_seconds == 0)
    config.deadline_seconds = default_deadline;
  burst_call *call;
  error = burst_call_create(program, &config, values, count, counters, &call);
  if (error)
    return error;
  if (config.stream) {
    burst_stream_push(config.stream, call);
    return NULL;
  }
  if (burst_device_cuda(config.device))
    return run_on_gpu(call);
  error = burst_call_run(call);
  burst_call_destroy(call);
  return error;
}
