#pragma once
// What kernels report: an index out of range is noted in a cell of host memory that the device sees, and thrown at the
// next point where the host waits for the device.
#include <cstdint>
#include <string>

namespace sinter::runtime {

// The address, on the device, of the cell in which a kernel of these ops notes an index that is out of range: a flag, the
// index and the extent, i64 each. The same for the same text; it lives as long as the process.
int64_t cuda_error_cell(int device, const std::string& ops);
// Throws the first report since the last check, and forgets all. The device must be idle, or at least past the kernel.
void check_cuda_errors(int device);

}  // namespace sinter::runtime
