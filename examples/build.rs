//! Makes the service of `bank.rs`, as `tonic-prost-build` would make it of a `.proto` file. So the
//! build does not need the compiler of Protocol Buffers.

use tonic_build::manual::{Builder, Method, Service};

fn main() {
    let update = Method::builder()
        .name("update")
        .route_name("Update")
        .input_type("crate::bank::Update")
        .output_type("crate::bank::Balance")
        .codec_path("tonic_prost::ProstCodec")
        .build();
    let bank = Service::builder()
        .name("Bank")
        .package("bank")
        .method(update);
    Builder::new().compile(&[bank.build()]);
}
