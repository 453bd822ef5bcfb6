/* A stand-in for the NVIDIA driver: its memory is the host's, its streams do everything at once, its kernels nothing.
   FAKE_CUDA_VERSION, FAKE_CUDA_INIT (a result), FAKE_CUDA_DEVICES and FAKE_CUDA_MEMORY (bytes) shape it. The first
   FAKE_CUDA_REFUSED_LOADS programs do not load, the first FAKE_CUDA_REFUSED_LAUNCHES kernels want too much. */
#include <stdlib.h>
#include <string.h>

typedef unsigned long long Address;

static long setting(const char* name, long usual) {
  const char* text = getenv(name);
  return text ? atol(text) : usual;
}

enum { kOutOfMemory = 2, kInvalidValue = 1, kInvalidImage = 200, kNotFound = 500, kOutOfResources = 701, kCaptureUnsupported = 900 };

static int capturing;
static size_t in_use;

int cuDriverGetVersion(int* version) { return *version = (int)setting("FAKE_CUDA_VERSION", 12040), 0; }
int cuInit(unsigned flags) { return (void)flags, (int)setting("FAKE_CUDA_INIT", 0); }
int cuGetErrorName(int result, const char** text) {
  return *text = result == 100 ? "CUDA_ERROR_NO_DEVICE" : result == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE", 0;
}
int cuGetErrorString(int result, const char** text) { return (void)result, *text = "the fake driver's text", 0; }
int cuDeviceGetCount(int* count) { return *count = (int)setting("FAKE_CUDA_DEVICES", 2), 0; }
int cuDeviceGet(int* device, int index) { return *device = index, 0; }
int cuDeviceGetName(char* name, int size, int device) { return (void)device, strncpy(name, "Fake GPU", size), 0; }
int cuDeviceGetAttribute(int* value, int which, int device) {
  (void)device;
  *value = which == 75 ? 9 : which == 76 ? 0 : 1 << 16; /* compute capability 9.0 */
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  return (void)device, *bytes = (size_t)setting("FAKE_CUDA_MEMORY", 1 << 28), 0;
}

static int contexts[64];
static __thread void* current;
int cuDevicePrimaryCtxRetain(void** context, int device) { return *context = &contexts[device], 0; }
int cuCtxGetCurrent(void** context) { return *context = current, 0; }
int cuCtxSetCurrent(void* context) { return current = context, 0; }

int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return (void)flags, (void)priority, *stream = malloc(1), 0;
}
int cuStreamDestroy_v2(void* stream) { return free(stream), 0; }
int cuStreamSynchronize(void* stream) { return (void)stream, capturing ? kCaptureUnsupported : 0; }
int cuStreamWaitEvent(void* stream, void* event, unsigned flags) { return (void)stream, (void)event, (void)flags, 0; }
int cuStreamBeginCapture_v2(void* stream, int mode) { return (void)stream, (void)mode, capturing = 1, 0; }
int cuStreamEndCapture(void* stream, void** graph) { return (void)stream, capturing = 0, *graph = malloc(1), 0; }
int cuThreadExchangeStreamCaptureMode(int* mode) { return (void)mode, 0; }

int cuEventCreate(void** event, unsigned flags) { return (void)flags, *event = malloc(1), 0; }
int cuEventDestroy_v2(void* event) { return free(event), 0; }
int cuEventRecord(void* event, void* stream) { return (void)event, (void)stream, 0; }
int cuEventQuery(void* event) { return (void)event, 0; }
int cuEventSynchronize(void* event) { return (void)event, 0; }
int cuEventElapsedTime(float* time, void* a, void* b) { return (void)a, (void)b, *time = 1, 0; }

/* The size stands before the memory. */
int cuMemAlloc_v2(Address* address, size_t bytes) {
  if (in_use + bytes > (size_t)setting("FAKE_CUDA_MEMORY", 1 << 28)) return kOutOfMemory;
  char* data = aligned_alloc(512, bytes + 512);
  *(size_t*)data = bytes;
  in_use += bytes;
  *address = (Address)(data + 512);
  return 0;
}
int cuMemFree_v2(Address address) {
  char* data = (char*)address - 512;
  in_use -= *(size_t*)data;
  free(data);
  return 0;
}
int cuMemGetInfo_v2(size_t* left, size_t* total) {
  cuDeviceTotalMem_v2(total, 0);
  return *left = *total - in_use, 0;
}
int cuMemHostAlloc(void** data, size_t bytes, unsigned flags) { return (void)flags, *data = malloc(bytes), 0; }
int cuMemFreeHost(void* data) { return free(data), 0; }
int cuMemHostGetDevicePointer_v2(Address* address, void* data, unsigned flags) {
  return (void)flags, *address = (Address)data, 0;
}
int cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, void* stream) {
  return (void)stream, memcpy((void*)to, from, bytes), 0;
}
int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, void* stream) {
  return (void)stream, memcpy(to, (void*)from, bytes), 0;
}
int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void* stream) {
  return (void)stream, memmove((void*)to, (void*)from, bytes), 0;
}
int cuMemcpyPeerAsync(Address to, void* a, Address from, void* b, size_t bytes, void* stream) {
  return (void)a, (void)b, (void)stream, memcpy((void*)to, (void*)from, bytes), 0;
}
int cuMemsetD8Async(Address to, unsigned char byte, size_t bytes, void* stream) {
  return (void)stream, memset((void*)to, byte, bytes), 0;
}
int cuPointerGetAttribute(void* value, int which, Address address) {
  return (void)value, (void)which, (void)address, kInvalidValue;
}

int cuModuleLoadData(void** module, const void* code) {
  static int loads;
  (void)code;
  if (loads++ < setting("FAKE_CUDA_REFUSED_LOADS", 0)) return kInvalidImage;
  return *module = malloc(1), 0;
}
int cuModuleUnload(void* module) { return free(module), 0; }
int cuModuleGetFunction(void** function, void* module, const char* name) {
  static char handles[64];
  static int count;
  (void)module;
  if (!strcmp(name, "missing")) return kNotFound;
  return *function = &handles[count++ % 64], 0;
}
int cuFuncGetAttribute(int* value, int which, void* function) { return (void)which, (void)function, *value = 32, 0; }
int cuFuncSetAttribute(void* function, int which, int value) { return (void)function, (void)which, (void)value, 0; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads, size_t shared) {
  return (void)function, (void)shared, *blocks = 2048 / threads, 0;
}
int cuLaunchKernelEx(const unsigned* config, void* function, void** params, void** extra) {
  static int launches;
  if (launches++ < setting("FAKE_CUDA_REFUSED_LAUNCHES", 0)) return kOutOfResources;
  return (void)function, (void)params, (void)extra, config[3] > 1024 ? kInvalidValue : 0; /* threads along x */
}

int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long flags) {
  return (void)graph, (void)flags, *executable = malloc(1), 0;
}
int cuGraphDestroy(void* graph) { return free(graph), 0; }
int cuGraphExecDestroy(void* executable) { return free(executable), 0; }
int cuGraphGetNodes(void* graph, void** nodes, size_t* count) { return (void)graph, (void)nodes, *count = 1, 0; }
int cuGraphUpload(void* executable, void* stream) { return (void)executable, (void)stream, 0; }
int cuGraphLaunch(void* executable, void* stream) { return (void)executable, (void)stream, 0; }
