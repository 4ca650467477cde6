// RUN: not burst-opt %s --burst-explain=max-ranks=0 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not burst-opt %s --burst-explain=max-ranks=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE

// ZERO: error: burst-explain shows at least 1 rank, got max-ranks=0
// NEGATIVE: error: burst-explain shows at least 1 rank, got max-ranks=-1
shard.grid @cp(shape = 2)
