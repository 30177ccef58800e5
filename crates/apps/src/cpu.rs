//! Loops compiled twice: for any processor of the architecture, and for those
//! with wide vectors, which the program finds out when it runs.
//!
//! `vectorised! { fn name[T: Bound](arguments) { body } }` is the function
//! `name`, whose body the compiler vectorises with AVX2 where the processor
//! has it. The body must be made of functions that are inlined.

macro_rules! vectorised {
    (
        $(#[$meta:meta])*
        $visible:vis fn $name:ident [$generic:ident: $bound:ident] ($($arg:ident: $type:ty),* $(,)?)
        $(-> $result:ty)? $body:block
    ) => {
        $(#[$meta])*
        $visible fn $name<$generic: $bound>($($arg: $type),*) $(-> $result)? {
            #[inline(always)]
            fn portable<$generic: $bound>($($arg: $type),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn wide<$generic: $bound>($($arg: $type),*) $(-> $result)? {
                    portable::<$generic>($($arg),*)
                }
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has what the function is compiled for.
                    return unsafe { wide::<$generic>($($arg),*) };
                }
            }
            portable::<$generic>($($arg),*)
        }
    };
}

pub(crate) use vectorised;
