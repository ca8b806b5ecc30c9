//! The kernels, compiled for the device at run time, and how they are run.

use crate::error::{Error, Result};
use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{CudaContext, CudaFunction, DriverError, LaunchArgs, LaunchConfig};
use cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};
use std::sync::Arc;

const KERNELS: &str = include_str!("kernels.cu");
/// The threads of a block, and the segments of the documents or terms whose sums are added in turn.
pub(super) const THREADS: u32 = 128;
pub(super) const SEGMENTS: u32 = 64;

/// The compiled kernels.
pub(super) struct Kernels {
    pub(super) documents: CudaFunction,
    pub(super) explain: CudaFunction,
    pub(super) sum_rows: CudaFunction,
    pub(super) link_gradient: CudaFunction,
    pub(super) update: CudaFunction,
    pub(super) refresh: CudaFunction,
    pub(super) sum_means: CudaFunction,
    pub(super) total_means: CudaFunction,
}

/// An error of the driver, in words.
pub(super) fn failed(error: DriverError) -> Error {
    use cudarc::driver::sys::CUresult::{
        CUDA_ERROR_INVALID_DEVICE, CUDA_ERROR_NO_DEVICE, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
    };
    let reason = match error.0 {
        CUDA_ERROR_NO_DEVICE => "there is no CUDA device".to_owned(),
        CUDA_ERROR_INVALID_DEVICE => "there is no CUDA device with this number (nvidia-smi lists them)".to_owned(),
        CUDA_ERROR_OUT_OF_MEMORY => {
            "the device has too little memory for this corpus and these layers; smaller minibatches need less"
                .to_owned()
        }
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
            "the driver is older than the CUDA libraries that compile for it; update the driver".to_owned()
        }
        _ => format!("the device failed: {error}"),
    };
    Error::Device { reason }
}

/// Whether the driver and the compiler of kernels are installed.
#[allow(unsafe_code, reason = "the libraries are loaded, and nothing in them is called")]
pub(super) fn check_libraries() -> Result<()> {
    let [driver, compiler] =
        unsafe { [cudarc::driver::sys::is_culib_present(), cudarc::nvrtc::sys::is_culib_present()] };
    match (driver, compiler) {
        (true, true) => Ok(()),
        (false, _) => Err(Error::Device { reason: "no CUDA driver (libcuda) is installed".to_owned() }),
        (_, false) => Err(Error::Device {
            reason: "the library that compiles for the device (libnvrtc) is not installed".to_owned(),
        }),
    }
}

/// Runs a kernel.
pub(super) fn launch(arguments: &mut LaunchArgs, (x, y): (u32, u32), shared: usize) -> Result<()> {
    launch_with(arguments, (x, y), THREADS, shared)
}

/// Runs a kernel with so many threads in a block.
#[allow(unsafe_code, reason = "the arguments agree with the kernel's, and every buffer is as long as it expects")]
pub(super) fn launch_with(arguments: &mut LaunchArgs, (x, y): (u32, u32), threads: u32, shared: usize) -> Result<()> {
    let config = LaunchConfig { grid_dim: (x, y, 1), block_dim: (threads, 1, 1), shared_mem_bytes: shared as u32 };
    unsafe { arguments.launch(config) }.map(|_| ()).map_err(failed)
}

/// The blocks that so many threads are in.
pub(super) fn blocks(len: usize) -> u32 {
    len.div_ceil(THREADS as usize) as u32
}

impl Kernels {
    pub(super) fn new(context: &Arc<CudaContext>, draws: usize) -> Result<Self> {
        let capability = |which| context.attribute(which).map_err(failed);
        let major = capability(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = capability(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let options = vec![format!("-arch=compute_{major}{minor}"), format!("-DDRAWS={draws}")];
        let compiled = compile_ptx_with_opts(KERNELS, CompileOptions { options, ..CompileOptions::default() });
        let reason = |error| Error::Device { reason: format!("the kernels cannot be compiled: {error}") };
        let module = context.load_module(compiled.map_err(reason)?).map_err(failed)?;
        let of = |name: &str| module.load_function(name).map_err(failed);
        Ok(Self {
            documents: of("documents")?,
            explain: of("explain")?,
            sum_rows: of("sum_rows")?,
            link_gradient: of("link_gradient")?,
            update: of("update")?,
            refresh: of("refresh")?,
            sum_means: of("sum_means")?,
            total_means: of("total_means")?,
        })
    }
}
