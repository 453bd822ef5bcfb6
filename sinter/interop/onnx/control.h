#pragma once
// If, Loop and Scan of ONNX, whose graphs are given as functions. Arguments are as translate.h hands them on; the lists of the last
// one are what the graphs read from around them.
#include <functional>

#include "sinter/interop/value.h"

namespace sinter::interop::onnx {

using Body = std::function<ValueList(ValueList)>;

// {condition, captured}. Under capture both branches are recorded where their results are alike.
ValueList run_if(const ValueList& arguments, const Body& yes, const Body& no);
// {most iterations or none, condition or none, state, captured}.
ValueList run_loop(const ValueList& arguments, const Body& body);
// {state, what is walked along, captured, directions and axes of that, directions and axes of the results}.
ValueList run_scan(const ValueList& arguments, const Body& body);

}  // namespace sinter::interop::onnx
