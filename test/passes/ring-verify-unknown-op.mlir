// RUN: burst-opt %s --ring-verify -verify-diagnostics -split-input-file

// Ops without operands that burst does not know.

shard.grid @cp(shape = 2)

func.func @index() attributes {ring.grid = @cp} {
  // expected-error @below {{cannot be evaluated}}
  %r = shard.process_linear_index on @cp : index
  return
}

// -----

shard.grid @cp(shape = 2)

func.func @region() attributes {ring.grid = @cp} {
  // expected-error @below {{cannot be evaluated}}
  scf.execute_region {
    scf.yield
  }
  return
}
