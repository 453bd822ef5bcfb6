#pragma once
// SINTER_OPTION(bool, bias) = true; inside a struct of options declares the value with its default, `bias()` to read it
// and `bias(false)` to set it, which gives the options again: Conv2dOptions(3, 8, 3).stride(2).padding(1).

#define SINTER_OPTION(type, name)              \
 public:                                       \
  const type& name() const { return name##_; } \
  auto& name(const type& value) {              \
    name##_ = value;                           \
    return *this;                              \
  }                                            \
                                               \
 private:                                      \
  type name##_
