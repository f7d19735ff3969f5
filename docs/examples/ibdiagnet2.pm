-------------------------------------------------------
Port=8 Lid=0x0000 GUID=0x0008f10401000000 Device=52000 Port Name=S1-0/P8
-------------------------------------------------------
link_down_counter=1
link_error_recovery_counter=2
symbol_error_counter=14
port_rcv_errors=0
port_xmit_discard=0
-------------------------------------------------------
Port=1 Lid=0x0000 GUID=0x0008f10402000001 Device=52000 Port Name=S2-1/P1
-------------------------------------------------------
link_down_counter=1
link_error_recovery_counter=0
symbol_error_counter=0
port_rcv_errors=0
port_xmit_discard=0
