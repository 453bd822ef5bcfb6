#pragma once
// Whether a forward runs a second time on this thread, for its gradients alone: what the first run has done beside its results,
// as to the statistics of a norm, is not done twice.
namespace sinter {

inline thread_local bool is_rerun = false;

}  // namespace sinter
