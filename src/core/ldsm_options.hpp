// The parameters of an LdSM forest.
#pragma once

#include <cstdint>

namespace labelwood {

enum class LdsmOptimizer { kNag, kAdagrad, kSgd };

struct LdsmOptions {
    int32_t arity;
    int64_t max_nodes;
    int32_t epochs;
    double lambda_integrity;
    double lambda_multiway;
    LdsmOptimizer optimizer;
    float learning_rate;
    float weight_threshold;  // weights that move a margin by less are dropped after training
    bool squared_loss;       // else logistic
    bool shuffle_epoch;      // a new order each epoch, else one order per tree
    bool divide_by_rows;     // leaf counts divided by the leaf's rows, else by their sum
    int32_t leaf_size;       // most frequent labels kept in a leaf; 0: all
};

}  // namespace labelwood
