//===- Transport.c - What is common to transports -------------------------===//

#include "Transport.h"

void burst_transport_stop(burst_transport *transport, const char *reason) {
  transport->table->stop(transport, reason);
}

void burst_transport_destroy(burst_transport *transport) {
  if (transport)
    transport->table->destroy(transport);
}
