// The viewer's page, as bytes of the program. GOFER_VIEWER is the path of viewer.html.
        .section .rodata
        .global gofer_viewer_begin
        .global gofer_viewer_end
gofer_viewer_begin:
        .incbin GOFER_VIEWER
gofer_viewer_end:
        .section .note.GNU-stack, "", %progbits
