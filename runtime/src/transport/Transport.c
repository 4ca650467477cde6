//===- Transport.c - What is common to transports -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/transport/Transport.h"

void burst_transport_begin(burst_transport *transport,
                           const burst_transport_kind *kind, int64_t rank,
                           int64_t num_ranks, burst_world *world) {
  transport->handle.magic = BURST_MAGIC(BURST_KIND_TRANSPORT);
  transport->kind = kind;
  transport->rank = rank;
  transport->num_ranks = num_ranks;
  transport->world = world;
  atomic_flag_clear(&transport->in_use);
}

void burst_transport_stop(burst_transport *transport, const char *reason) {
  BURST_CHECK(transport, BURST_KIND_TRANSPORT);
  if (transport)
    transport->kind->stop(transport, reason ? reason : "no reason was given");
}

burst_error *burst_transport_prepare(burst_transport *transport,
                                     const burst_group *groups, int64_t count,
                                     double seconds) {
  burst_error *error = NULL;
  if (!transport || !transport->kind->prepare)
    return NULL;
  for (int64_t i = 0; i < count && !error; ++i)
    error = transport->kind->prepare(transport, &groups[i], seconds);
  return error;
}

void burst_transport_destroy(burst_transport *transport) {
  BURST_CHECK(transport, BURST_KIND_TRANSPORT);
  if (!transport)
    return;
  burst_handle_end(&transport->handle);
  transport->kind->destroy(transport);
}
